package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkColdStart measures from spawn to the answer of tools/list, handshake
// included. The floors beside it: spawning true, and, where Node is installed,
// the start of a stdio server built on the TypeScript SDK.
func BenchmarkColdStart(b *testing.B) {
	b.Run("perstack-base", func(b *testing.B) {
		dir := workspace(b)
		for b.Loop() {
			c := start(b, dir, "serve")
			c.initialize()
			c.request("tools/list", nil)
			c.in.Close()
			<-c.exited
		}
	})
	b.Run("floor=true", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("node-sdk", func(b *testing.B) {
		dir := os.Getenv("PERSTACK_BASE_E2E_NODE")
		if dir == "" {
			b.Skip("needs e2e/clients installed")
		}
		for b.Loop() {
			cmd := exec.Command(filepath.Join(dir, "node_modules/node/bin/node"), filepath.Join(dir, "server_v1.mjs"))
			c := startCommand(b, cmd)
			c.initialize()
			c.request("tools/list", nil)
			c.in.Close()
			<-c.exited
		}
	})
}

// A raw client writes one request and reads one line: it costs next to nothing
// beside the server.
type rawClient struct {
	in  io.Writer
	out *bufio.Reader
}

func startRaw(b *testing.B, dir string, args ...string) (*rawClient, *exec.Cmd) {
	b.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return &rawClient{in, bufio.NewReaderSize(out, 1<<20)}, cmd
}

func (c *rawClient) call(b *testing.B, line []byte) {
	if _, err := c.in.Write(line); err != nil {
		b.Fatal(err)
	}
	answer, err := c.out.ReadSlice('\n')
	if err != nil || bytes.Contains(answer, []byte(`"isError":true`)) || !bytes.Contains(answer, []byte(`"result"`)) {
		b.Fatalf("%.300s (%v)", answer, err)
	}
}

// BenchmarkStdio measures calls through the real binary, one after another. The
// comparator is attemptCompletion, the call that does nothing.
func BenchmarkStdio(b *testing.B) {
	dir := workspace(b)
	for name, content := range map[string]string{
		"small.txt": strings.Repeat("0123456789abcde\n", 64), "edit.txt": strings.Repeat("some line of text\n", 5800),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	benchmarkCalls(b, dir, []callBenchmark{
		{"noop", "attemptCompletion", `{}`},
		{"todo", "todo", `{"completedTodos":[]}`},
		{"read-1KB", "readTextFile", `{"path":"small.txt"}`},
		{"write-4KB", "writeTextFile", `{"path":"out.txt","text":"` + strings.Repeat("x", 4096) + `"}`},
		{"edit-100KB", "editTextFile", `{"path":"edit.txt","oldText":"line of text\n","newText":"line of text\n"}`},
		{"exec-true", "exec", `{"command":"true","args":[],"env":{},"cwd":"","stdout":true,"stderr":true}`},
	})
	big := filepath.Join(dir, "big.txt")
	writeBig(b, big, 100<<20)
	benchmarkCalls(b, dir, []callBenchmark{
		{"tail-of-100MB", "readTextFile", `{"path":"big.txt","from":-10}`},
		{"output-10MB", "exec", `{"command":"head","args":["-c","10000000","big.txt"],"env":{},"cwd":"","stdout":true,"stderr":true}`},
	})
	b.Run("floor=scan-100MB", func(b *testing.B) {
		for b.Loop() {
			scan(b, big)
		}
	})
}

type callBenchmark struct{ name, tool, args string }

func benchmarkCalls(b *testing.B, dir string, calls []callBenchmark) {
	for _, call := range calls {
		b.Run(call.name, func(b *testing.B) {
			c, cmd := startRaw(b, dir, "serve")
			line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", call.tool, call.args)
			for b.Loop() {
				c.call(b, line)
			}
			b.ReportMetric(float64(peakKB(b, cmd.Process.Pid))/1024, "peak-MB")
		})
	}
}

// scan counts the lines of a file, which is the least that its last lines cost
// when their number is wanted too.
func scan(b *testing.B, path string) (lines int) {
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	for chunk := make([]byte, 256<<10); ; {
		n, err := file.Read(chunk)
		lines += bytes.Count(chunk[:n], []byte{'\n'})
		if err != nil {
			return lines
		}
	}
}

func writeBig(t testing.TB, path string, size int) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	block := []byte(strings.Repeat("the quick brown fox jumps over the lazy dog, again and again and again\n", 1000))
	for written := 0; written < size; written += len(block) {
		if _, err := file.Write(block); err != nil {
			t.Fatal(err)
		}
	}
}

// peakKB is the most memory that the process ever had resident.
func peakKB(t testing.TB, pid int) int { return status(t, pid, "VmHWM:") }

// residentKB is the memory that the process has resident now.
func residentKB(t testing.TB, pid int) int { return status(t, pid, "VmRSS:") }

func status(t testing.TB, pid int, field string) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("needs /proc:", err)
	}
	_, rest, ok := strings.Cut(string(data), field)
	if !ok {
		t.Skip("no", field, "in /proc")
	}
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The bounds of memory, in KB, that the server promises. They are measured on
// the real binary and are no matter of speed, so they are tests.
const (
	idleKB      = 20 << 10
	bigFileKB   = 40 << 10
	bigOutputKB = 80 << 10
)

func TestMemoryIsBounded(t *testing.T) {
	dir := workspace(t)
	writeBig(t, filepath.Join(dir, "big.txt"), 100<<20)
	for _, c := range []struct {
		name, tool string
		args       json.RawMessage
		most       int
	}{
		{"idle", "todo", json.RawMessage(`{}`), idleKB},
		{"10 lines at the end of 100 MB", "readTextFile", json.RawMessage(`{"path":"big.txt","from":-10}`), bigFileKB},
		{"100 MB file read whole", "readTextFile", json.RawMessage(`{"path":"big.txt"}`), bigOutputKB},
		{"300 MB of output", "exec", run(`head -c 300000000 /dev/zero | tr '\0' 'x'`), bigOutputKB},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := start(t, dir, "serve")
			server.initialize()
			server.request("tools/list", nil)
			result, err := server.call(c.tool, c.args)
			if err != nil || result.IsError {
				t.Fatal(result, err)
			}
			measure := peakKB
			if c.name == "idle" {
				measure = residentKB
			}
			if got := measure(t, server.cmd.Process.Pid); got > c.most {
				t.Errorf("the server grew to %d KB, more than %d", got, c.most)
			}
		})
	}
}
