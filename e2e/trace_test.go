package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A spanLine is a line of --trace-file; e2e/otlp reads them with the definitions of
// OpenTelemetry.
type spanLine struct {
	TraceID, SpanID, ParentSpanID, Name string
	Attributes                          []struct {
		Key   string
		Value map[string]any
	}
}

func (s spanLine) get(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return fmt.Sprint(a.Value["stringValue"])
		}
	}
	return ""
}

// spansIn reads a file, of which every line must be whole, and have none of the words.
func spansIn(t *testing.T, path string, never ...string) (spans []spanLine) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var one struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []spanLine } }
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil || !strings.HasSuffix(line, "}\n") {
			t.Fatalf("%v: %q", err, line)
		}
		for _, word := range never {
			if strings.Contains(line, word) {
				t.Errorf("%q is in the file: %s", word, line)
			}
		}
		spans = append(spans, one.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	return spans
}

// TestTraceFile: spans and lines of the log have the same ids, and tell nothing of
// what calls carried.
func TestTraceFile(t *testing.T) {
	dir, out := workspace(t), t.TempDir()
	file, log := filepath.Join(out, "spans"), filepath.Join(out, "log")
	c := start(t, dir, "serve", "--trace-file", file, "--log-file", log)
	c.initialize()
	if _, err := c.call("writeTextFile", json.RawMessage(`{"path":"sesame.txt","text":"sesame"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.call("exec", run("echo $X; exit 4", `env={"X":"sesame"}`)); err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	if code := c.end(); code != 0 || strings.Contains(c.stderr.String(), "span") {
		t.Errorf("exit code %d: %s", code, c.stderr.String())
	}
	byID := map[string]string{}
	for _, s := range spansIn(t, file, "sesame", dir) {
		byID[s.TraceID+s.SpanID] = s.Name
	}
	logged, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for line := range strings.Lines(string(logged)) {
		var entry struct {
			Msg, Tool string
			TraceID   string `json:"trace_id"`
			SpanID    string `json:"span_id"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Msg == "call" {
			calls++
			if got := byID[entry.TraceID+entry.SpanID]; got != "tools/call "+entry.Tool {
				t.Errorf("the span of %s is %q", line, got)
			}
		}
	}
	if calls != 2 {
		t.Errorf("%d calls in %s", calls, logged)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file is for its owner alone: %v %v", info, err)
	}
}

// TestTraceFileOverHTTP: every transport and era has its spans, and what waits is
// written when a signal ends the server.
func TestTraceFileOverHTTP(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a server cannot be asked to end here")
	}
	for name, connect := range map[string]func(args ...string) (*site, *client){
		"http, legacy": func(args ...string) (*site, *client) {
			s := startSite(t, workspace(t), "http", args...)
			return s, visit(s, false).client
		},
		"http, modern": func(args ...string) (*site, *client) {
			s := startSite(t, workspace(t), "http", args...)
			return s, visit(s, true).client
		},
		"sse": func(args ...string) (*site, *client) {
			s := startSite(t, workspace(t), "sse", args...)
			return s, listen(s).client
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "spans")
			s, c := connect("--trace-file", file)
			if !c.modern {
				c.initialize()
			}
			if _, err := c.call("exec", run("exit 4")); err != nil {
				t.Fatal(err)
			}
			if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := s.end(); code != 0 {
				t.Errorf("exit code %d: %s", code, s.stderr.String())
			}
			var call, command spanLine
			for _, span := range spansIn(t, file) {
				switch span.Name {
				case "tools/call exec":
					call = span
				case "command":
					command = span
				}
			}
			if call.get("network.transport") != "tcp" || call.get("error.type") != "tool_error" || command.ParentSpanID != call.SpanID || call.SpanID == "" {
				t.Errorf("%v %v", call, command)
			}
			if id := call.get("mcp.session.id"); (id == "") != c.modern {
				t.Errorf("the session is %q", id)
			}
		})
	}
}

// TestTraceFileOfManyServers: several append to one file, a line at a time.
func TestTraceFileOfManyServers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spans")
	const servers, calls = 3, 200
	var all sync.WaitGroup
	for range servers {
		c := start(t, workspace(t), "serve", "--trace-file", file)
		c.initialize()
		all.Go(func() {
			for range calls {
				c.request("ping", nil)
			}
			c.in.Close()
			c.end()
		})
	}
	all.Wait()
	if n := len(spansIn(t, file)); n != servers*(calls+1) {
		t.Errorf("%d spans", n)
	}
}

// TestTraceFileThatIsNoUse: the server does not start with a file that it cannot open,
// or that commands could write.
func TestTraceFileThatIsNoUse(t *testing.T) {
	dir := workspace(t)
	for path, want := range map[string]string{
		filepath.Join(dir, "none", "spans"): "cannot append to the trace file", t.TempDir(): "cannot append to the trace file",
		filepath.Join(dir, "spans"): "commands can write there",
	} {
		if stdout, stderr, code := cli(t, dir, nil, "serve", "--trace-file", path); code != 2 || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("%s: exit code %d: %s", path, code, stderr)
		}
	}
}
