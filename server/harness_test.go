package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/tools"
)

// hang is how long a test waits before it says that something hangs.
const hang = 20 * time.Second

// A bench is an MCP server with small tools, and what they have seen.
type bench struct {
	*mcpserver.MCPServer
	mu      sync.Mutex
	events  []string
	gates   map[string]chan struct{}
	started chan string // the tag of every gate call as it starts
}

func (b *bench) note(event string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, event)
}

func (b *bench) seen() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.events, " ")
}

func (b *bench) gate(tag string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gates[tag] == nil {
		b.gates[tag] = make(chan struct{})
	}
	return b.gates[tag]
}

func text(s string) *mcp.CallToolResult { return mcp.NewToolResultText(s) }

// newBench has the tools noop, echo(text), gate(tag), lane(tag), deaf(tag),
// notes(n), big(n), panics, fails and ask.
func newBench() *bench {
	b := &bench{
		MCPServer: mcpserver.NewMCPServer("bench", "1", mcpserver.WithToolCapabilities(true),
			mcpserver.WithResourceCapabilities(false, true), mcpserver.WithElicitation()),
		gates: map[string]chan struct{}{}, started: make(chan string, 10000),
	}
	add := func(name string, f func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		b.AddTool(mcp.NewTool(name), f)
	}
	add("noop", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("ok"), nil })
	add("echo", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(r.GetString("text", "")), nil
	})
	gate := func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		tag := r.GetString("tag", "")
		b.note("+" + tag)
		defer b.note("-" + tag)
		b.started <- tag
		select {
		case <-b.gate(tag):
			return text(tag), nil
		case <-ctx.Done():
			return mcp.NewToolResultError("cancelled"), nil
		}
	}
	add("gate", gate)
	add("lane", gate)
	add("deaf", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return gate(context.Background(), r)
	})
	add("notes", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		notify := tools.NotifierFrom(ctx)
		for i := range r.GetInt("n", 1) {
			notify("notifications/progress", map[string]any{"progress": i})
		}
		return text("ok"), nil
	})
	add("big", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("x", r.GetInt("n", 1))), nil
	})
	add("panics", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("secret") })
	add("fails", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("secret")
	})
	add("ask", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r, err := b.RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{
			Message: "really?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
		}})
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return text(string(r.Action)), nil
	})
	b.AddResource(mcp.NewResource("x://big", "big"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "x://big", Text: strings.Repeat("x", maxMessage)}}, nil
	})
	return b
}

func (b *bench) config() stdioConfig {
	return stdioConfig{connConfig: connConfig{
		handler: b.MCPServer,
		lane: func(tool string) string {
			if tool == "lane" {
				return "list"
			}
			return ""
		},
		intercept: func(_ context.Context, r *request) (any, *rpcError, bool) {
			switch {
			case r.method == "skills/list":
				return map[string]any{"skills": []string{}}, nil, true
			case r.method == methodToolsCall && b.GetTool(r.tool) == nil:
				return nil, invalidParams(fmt.Sprintf("Unknown tool %q.", r.tool)), true
			}
			return nil, nil, false
		},
	}}
}

// talk feeds input to a fresh server and returns what it wrote until it ended.
func talk(t testing.TB, input string) string {
	t.Helper()
	return talkTo(t, newBench(), strings.NewReader(input))
}

func talkTo(t testing.TB, b *bench, in io.Reader) string {
	t.Helper()
	var out bytes.Buffer
	if err := serveStdio(t.Context(), in, &out, b.config()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A line is a live stdio connection to a bench.
type line struct {
	*bench
	t    *testing.T
	in   *io.PipeWriter
	out  *io.PipeReader
	pump sync.Once
	got  chan string // lines of out, once somebody wants one
	done chan error
	stop context.CancelFunc
}

func dial(t *testing.T, change func(*stdioConfig)) *line {
	t.Helper()
	b := newBench()
	cfg := b.config()
	if change != nil {
		change(&cfg)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	l := &line{bench: b, t: t, in: inW, out: outR, got: make(chan string, 10000), done: make(chan error, 1), stop: stop}
	go func() {
		err := serveStdio(ctx, inR, outW, cfg)
		outW.Close()
		l.done <- err
	}()
	t.Cleanup(func() {
		stop()
		inW.Close()
		outR.Close()
	})
	return l
}

func (l *line) send(lines ...string) {
	l.t.Helper()
	for _, s := range lines {
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(l.in, s+"\n")
			sent <- err
		}()
		if err := within(l.t, sent, "the reader"); err != nil {
			l.t.Fatal(err)
		}
	}
}

// next returns the next line of output, "" at its end.
func (l *line) next() string {
	l.t.Helper()
	l.pump.Do(func() {
		go func() {
			defer close(l.got)
			out := bufio.NewReader(l.out)
			for {
				s, err := out.ReadString('\n')
				if err != nil {
					return
				}
				l.got <- strings.TrimSuffix(s, "\n")
			}
		}()
	})
	return within(l.t, l.got, "a line of output")
}

func (l *line) want(lines ...string) {
	l.t.Helper()
	for _, want := range lines {
		if got := l.next(); got != want {
			l.t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

// wait waits for the gate calls with these tags to start, in any order.
func (l *line) wait(tags ...string) {
	l.t.Helper()
	for range tags {
		within(l.t, l.started, "a call to start")
	}
}

// exchange sends a stream and returns n lines of answers, all that there are.
// Unlike talk it keeps the input open until they are in: long messages may
// take longer than the end of input leaves them.
func exchange(t *testing.T, in string, n int) string {
	t.Helper()
	l := dial(t, nil)
	l.send(in)
	var out strings.Builder
	for range n {
		out.WriteString(l.next() + "\n")
	}
	l.end()
	return out.String()
}

// end closes the input, expects the given output and a clean end.
func (l *line) end(lines ...string) {
	l.t.Helper()
	l.in.Close()
	l.want(append(lines, "")...)
	if err := within(l.t, l.done, "the end"); err != nil {
		l.t.Fatal(err)
	}
}

func within[T any](t *testing.T, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(hang):
		t.Fatalf("waited %v for %s", hang, what)
	}
	return v
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func toolCall(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}

func tagged(id, tool, tag string) string { return toolCall(id, tool, `{"tag":"`+tag+`"}`) }

func cancelOf(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

func okText(id, s string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + s + `"}]}}`
}

func errText(id, s string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + s + `"}],"isError":true}}`
}

func refusal(id string, code int, msg string) string {
	quoted, _ := json.Marshal(msg)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, quoted)
}

func greeting(id, version string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
}
