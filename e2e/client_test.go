package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// legacyVersion is the newest revision that begins with a handshake,
// modernVersion the one without.
const (
	legacyVersion = "2025-11-25"
	modernVersion = "2026-07-28"
)

// hangGuard bounds every wait for something that must happen; it measures nothing.
const hangGuard = 3 * time.Minute

// A process is one run of the binary, or of another server.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stderr bytes.Buffer
	exited chan struct{}
}

// A client speaks JSON-RPC with one process, over whatever it was started for.
type client struct {
	*process
	in      io.WriteCloser    // stdio only
	deliver func(line []byte) // sends one message
	modern  bool              // every request says what it speaks, none is a handshake

	mu      sync.Mutex
	nextID  int
	waiting map[string]chan message
	notes   []message
}

// A message is what the server sends.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// start launches the binary in dir. It is killed when the test ends.
func start(t testing.TB, dir string, args ...string) *client {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	return startCommand(t, cmd)
}

// startCommand launches any stdio server.
func startCommand(t testing.TB, cmd *exec.Cmd) *client {
	t.Helper()
	c := newClient(&process{t: t, cmd: cmd, exited: make(chan struct{})})
	cmd.Stderr = &c.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in = in
	c.deliver = func(line []byte) {
		t.Helper()
		if _, err := in.Write(line); err != nil {
			t.Fatalf("writing to the server: %v", err)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read(out)
	t.Cleanup(c.kill)
	return c
}

func newClient(p *process) *client {
	return &client{process: p, waiting: map[string]chan message{}}
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.exited
}

func (c *client) read(out io.Reader) {
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			c.take(line)
		}
		if err != nil {
			break
		}
	}
	c.cmd.Wait()
	close(c.exited)
}

func (c *client) take(line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		c.t.Errorf("standard output carries something else than JSON-RPC: %q", line)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch, ok := c.waiting[string(m.ID)]; ok && m.Method == "" {
		delete(c.waiting, string(m.ID))
		ch <- m
		return
	}
	c.notes = append(c.notes, m)
}

// send writes one request and returns its id and the channel of its answer.
func (c *client) send(method string, params any) (id string, answer chan message) {
	c.t.Helper()
	c.mu.Lock()
	c.nextID++
	id, answer = fmt.Sprint(c.nextID), make(chan message, 1)
	c.waiting[id] = answer
	c.mu.Unlock()
	c.writeMessage(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method}, c.stamped(params))
	return id, answer
}

func (c *client) notify(method string, params any) {
	c.t.Helper()
	c.writeMessage(map[string]any{"jsonrpc": "2.0", "method": method}, params)
}

// writeMessage writes one message; nil params are left out.
func (c *client) writeMessage(message map[string]any, params any) {
	c.t.Helper()
	if params != nil {
		message["params"] = params
	}
	line, err := json.Marshal(message)
	if err != nil {
		c.t.Fatal(err)
	}
	c.deliver(append(line, '\n'))
}

// modernMeta is what every request of the modern era says of its client.
var modernMeta = map[string]any{
	"io.modelcontextprotocol/protocolVersion":    modernVersion,
	"io.modelcontextprotocol/clientCapabilities": map[string]any{},
	"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "e2e", "version": "1"},
}

// stamped puts that into params.
func (c *client) stamped(params any) any {
	if !c.modern {
		return params
	}
	all := map[string]any{}
	if given, ok := params.(map[string]any); ok {
		maps.Copy(all, given)
	}
	meta := maps.Clone(modernMeta)
	if given, ok := all["_meta"].(map[string]any); ok {
		maps.Copy(meta, given)
	}
	all["_meta"] = meta
	return all
}

// wait returns the answer that comes on the channel.
func (c *client) wait(answer chan message) message {
	c.t.Helper()
	select {
	case m := <-answer:
		return m
	case <-c.exited:
		select {
		case m := <-answer:
			return m
		default:
			c.t.Fatalf("the server ended instead of answering: %s", c.stderr.String())
		}
	case <-time.After(hangGuard):
		c.t.Fatal("no answer")
	}
	return message{}
}

// request sends one request and returns its result; an error answer fails the test.
func (c *client) request(method string, params any) json.RawMessage {
	c.t.Helper()
	_, answer := c.send(method, params)
	m := c.wait(answer)
	if m.Error != nil {
		c.t.Fatalf("%s: %d %s", method, m.Error.Code, m.Error.Message)
	}
	return m.Result
}

// initialize performs the handshake of the legacy era; the modern one has none.
func (c *client) initialize() json.RawMessage {
	c.t.Helper()
	if c.modern {
		return nil
	}
	result := c.request("initialize", map[string]any{
		"protocolVersion": legacyVersion,
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "e2e", "version": "1"},
	})
	c.notify("notifications/initialized", nil)
	return result
}

// call runs one tool.
func (c *client) call(tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
	c.t.Helper()
	var result mcp.CallToolResult
	raw := c.request("tools/call", map[string]any{"name": tool, "arguments": args})
	return &result, json.Unmarshal(raw, &result)
}

// end waits for the process to exit and returns its exit code.
func (p *process) end() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(hangGuard):
		p.t.Fatal("the server does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// text is the first block of a result.
func text(t testing.TB, r *mcp.CallToolResult) string {
	t.Helper()
	block, ok := r.Content[0].(mcp.TextContent)
	if !ok {
		t.Fatalf("the first block is a %T", r.Content[0])
	}
	return block.Text
}

// nodeDir is where third-party clients are installed, or the test is skipped
// with the line that installs them.
func nodeDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("PERSTACK_BASE_E2E_NODE")
	if dir == "" {
		t.Skip("third-party clients are not installed; npm ci --prefix e2e/clients && export PERSTACK_BASE_E2E_NODE=$PWD/e2e/clients")
	}
	return dir
}

// run is the exec tool's arguments for a shell command line.
func run(line string, extra ...string) json.RawMessage {
	args := map[string]any{"command": "sh", "args": []string{"-c", line}, "env": map[string]string{}, "cwd": "", "stdout": true, "stderr": true}
	for _, kv := range extra {
		key, value, _ := strings.Cut(kv, "=")
		args[key] = json.RawMessage(value)
	}
	raw, _ := json.Marshal(args)
	return raw
}

func callParams(tool string, args json.RawMessage) map[string]any {
	return map[string]any{"name": tool, "arguments": args}
}
