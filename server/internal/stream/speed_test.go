package stream

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	. "github.com/perstack-ai/perstack-base/server/internal/servertest"
)

// TestMain is also the server under test: a process of its own, with real
// descriptors 0 and 1.
func TestMain(m *testing.M) {
	b := New()
	switch os.Getenv("SERVER_TEST_LOOP") {
	case "conn":
		s := over(b, os.Stdin, os.Stdout)
		s.Dispatcher.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
		if err := s.Serve(context.Background()); err != nil {
			os.Exit(1)
		}
	case "goroutines":
		withoutRelay(b)
	case "loop":
		naiveLoop(b.MCPServer)
	case "bare":
		_ = mcpserver.ServeStdio(b.MCPServer)
	default:
		os.Exit(m.Run())
	}
}

// withoutRelay serves every call in a goroutine of its own.
func withoutRelay(b *Bench) {
	c, err := Open(context.Background(), b.Dispatcher(), "stdio", func(line []byte) error {
		_, err := os.Stdout.Write(line)
		return err
	})
	if err != nil {
		os.Exit(1)
	}
	for lines := jsonrpc.NewLineReader(os.Stdin); ; {
		call, err := c.readLine(lines)
		if err != nil {
			return
		}
		if call != nil {
			go c.Serve(call)
		}
	}
}

// naiveLoop is the least that serves: read a line, answer it, write.
func naiveLoop(s *mcpserver.MCPServer) {
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	for {
		l, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if reply := s.HandleMessage(context.Background(), l); reply != nil {
			text, _ := json.Marshal(reply)
			os.Stdout.Write(append(text, '\n'))
		}
	}
}

// A child is a server in a process of its own.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func spawn(t testing.TB, loop string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "SERVER_TEST_LOOP="+loop)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &child{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 64<<10)}
}

func (c *child) call(t testing.TB, message string) string {
	t.Helper()
	if _, err := io.WriteString(c.in, message+"\n"); err != nil {
		t.Fatal(err)
	}
	reply, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// BenchmarkCall measures a call of a tool that does nothing, over the pipes of
// a process: ours, the same without the relay, the naive loop, and mcp-go's
// ServeStdio. They take turns, so that the machine treats them alike. Compare the medians
// in us/call.
func BenchmarkCall(b *testing.B) {
	loops := []string{"conn", "goroutines", "loop", "bare"}
	children := map[string]*child{}
	took := map[string][]time.Duration{}
	for _, name := range loops {
		children[name] = spawn(b, name)
		for range 200 {
			children[name].call(b, ToolCall("1", "noop", "{}"))
		}
	}
	message := ToolCall("1", "noop", "{}")
	b.ResetTimer()
	for range b.N {
		for _, name := range loops {
			start := time.Now()
			children[name].call(b, message)
			took[name] = append(took[name], time.Since(start))
		}
	}
	for _, name := range loops {
		slices.Sort(took[name])
		b.ReportMetric(float64(took[name][len(took[name])/2].Nanoseconds())/1000, name+"-us/call")
	}
}

// A long message leaves no more behind than it needs.
func TestMemoryAfterALongMessage(t *testing.T) {
	if raced {
		t.Skip("the race detector needs memory of its own")
	}
	c := spawn(t, "conn")
	reply := c.call(t, ToolCall("1", "echo", `{"text":"`+strings.Repeat("x", 7<<20)+`"}`))
	if len(reply) < 7<<20 {
		t.Fatalf("the answer has %d bytes", len(reply))
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		t.Skip("no /proc here")
	}
	var kib int
	for l := range strings.Lines(string(status)) {
		if n, _ := fmt.Sscanf(l, "VmRSS: %d kB", &kib); n == 1 {
			break
		}
	}
	t.Logf("resident: %d KiB", kib)
	if kib == 0 || kib > 150_000_000/1024 {
		t.Errorf("resident: %d KiB", kib)
	}
}

// Real pipes: piped input is answered, and the process is gone.
func TestPipedProcess(t *testing.T) {
	for range 5 {
		c := spawn(t, "conn")
		io.WriteString(c.in, Ping+"\n"+ToolCall("2", "noop", "{}"))
		c.in.Close()
		out, err := io.ReadAll(c.out)
		if err != nil {
			t.Fatal(err)
		}
		sameLines(t, string(out), []string{Pong, OKText("2", "ok")})
		if err := c.cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}
