//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// tracedVar makes the test binary have its parent trace it, and stop: who waits for a
// process that it traces is told of each stop as of an end.
const tracedVar = "CONFINE_TEST_TRACED"

func beTraced() {
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0, 0, 0, 0)
	if e == 0 {
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGUSR1)
	}
	os.Exit(3)
}

// tracing tells whether a process in the workspace stands still because it is traced.
func (p place) tracing() bool {
	for _, pid := range p.living() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if strings.Contains(string(text), "State:\tt") {
			return true
		}
	}
	return false
}

// TestTracedByItsReaper: a command that has itself traced by its reaper, which waits for
// its end, has not ended when it stops, and its end is told once.
func TestTracedByItsReaper(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	p := newPlace(t)
	i := p.attacked(t)
	c := p.launch(t, i, []string{tracedVar + "=1"}, exe)
	eventually(t, "it is not traced", p.tracing)
	p.goesOnWith(t, i)
	p.kill(t, c)
	if status := c.Wait(); !status.Signaled() || status.Signal() != unix.SIGKILL {
		t.Errorf("it ended with %#x, and was killed", status)
	}
	p.goesOnWith(t, i)
}
