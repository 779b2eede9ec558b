package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNobodyReadsStandardError: a client that takes no line of the log is answered all
// the same, the file of the log has every line, and the server ends.
func TestNobodyReadsStandardError(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if _, err := unix.FcntlInt(write.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Fatal(err)
	}
	dir, log := workspace(t), filepath.Join(t.TempDir(), "log")
	cmd := exec.Command("sh", "-c", `exec "$@" 2>&3 3>&-`, "sh", binary, "--log-level", "info", "--log-file", log)
	cmd.Dir, cmd.ExtraFiles = dir, []*os.File{write}
	c := startCommand(t, cmd)
	write.Close()
	c.initialize()
	const calls = 200
	for range calls {
		if _, err := c.call("readTextFile", json.RawMessage(`{"path":"a.txt"}`)); err != nil {
			t.Fatal(err)
		}
	}
	c.in.Close()
	c.end()
	text, err := os.ReadFile(log)
	if n := strings.Count(string(text), `"msg":"call"`); err != nil || n != calls {
		t.Errorf("%d lines of %d calls %v", n, calls, err)
	}
}
