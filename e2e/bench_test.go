package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// BenchmarkStdio measures calls through the real binary, one after another. The
// comparator is attemptCompletion, the call that does nothing.
func BenchmarkStdio(b *testing.B) {
	dir := workspace(b)
	files := map[string]string{"small.txt": strings.Repeat("0123456789abcde\n", 64), "edit.txt": strings.Repeat("some line of text\n", 5800)}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	writeBig(b, filepath.Join(dir, "big.txt"), 100<<20)
	for _, bench := range []struct{ name, tool, args string }{
		{"noop", "attemptCompletion", `{}`},
		{"todo", "todo", `{"completedTodos":[]}`},
		{"read-1KB", "readTextFile", `{"path":"small.txt"}`},
		{"tail-of-100MB", "readTextFile", `{"path":"big.txt","from":-10}`},
		{"write-4KB", "writeTextFile", `{"path":"out.txt","text":"` + strings.Repeat("x", 4096) + `"}`},
		{"edit-100KB", "editTextFile", `{"path":"edit.txt","oldText":"line of text\n","newText":"line of text\n"}`},
		{"exec-true", "exec", `{"command":"true","args":[],"env":{},"cwd":"","stdout":true,"stderr":true}`},
		{"output-10MB", "exec", `{"command":"head","args":["-c","10000000","big.txt"],"env":{},"cwd":"","stdout":true,"stderr":true}`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			c := start(b, dir, "serve")
			c.initialize()
			for b.Loop() {
				result, err := c.call(bench.tool, json.RawMessage(bench.args))
				if err != nil || result.IsError {
					b.Fatal(result, err)
				}
			}
			b.ReportMetric(float64(peakKB(b, c.cmd.Process.Pid))/1024, "peak-MB")
		})
	}
	b.Run("floor=scan-100MB", func(b *testing.B) {
		chunk := make([]byte, 256<<10)
		for b.Loop() {
			file, err := os.Open(filepath.Join(dir, "big.txt"))
			if err != nil {
				b.Fatal(err)
			}
			for lines := 0; ; {
				n, err := file.Read(chunk)
				lines += bytes.Count(chunk[:n], []byte{'\n'})
				if err != nil {
					break
				}
			}
			file.Close()
		}
	})
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
			if got := peakKB(t, server.cmd.Process.Pid); got > c.most {
				t.Errorf("the server grew to %d KB, more than %d", got, c.most)
			}
		})
	}
}
