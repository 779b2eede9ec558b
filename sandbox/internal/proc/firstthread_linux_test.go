package proc

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
)

// TestFirstThreadEnded: a process whose first thread has ended lives, and tells of itself
// what others do, by another thread.
func TestFirstThreadEnded(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	c := exec.Command(self)
	c.Env = []string{filetest.FirstThreadEnds, "TMPDIR=/nowhere/of-this-test"}
	must(t, c.Start())
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	pid := c.Process.Pid
	eventually(t, "its first thread does not end", func() bool {
		return strings.HasPrefix(StatusField(pid, "State"), "Z")
	})
	if n, _ := strconv.Atoi(StatusField(pid, "Threads")); n < 2 {
		t.Fatalf("it has %d threads: nothing is proven", n)
	}
	if p, ok := Read(pid); !ok || p.Dead {
		t.Errorf("it counts as dead: %+v", p)
	}
	if !slices.Contains(Environ(pid), "TMPDIR=/nowhere/of-this-test") {
		t.Errorf("its environment is %q", Environ(pid))
	}
	must(t, c.Process.Kill())
	eventually(t, "it does not count as dead", func() bool { p, ok := Read(pid); return !ok || p.Dead })
}
