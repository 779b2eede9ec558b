package proc

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// firstEndsVar makes the test binary a program whose first thread ends and whose others go
// on, as a program in C does that ends its main by pthread_exit.
const firstEndsVar = "PERSTACK_BASE_TEST_FIRST_ENDS"

func init() { // on the first thread
	if os.Getenv(firstEndsVar) != "" {
		_, _, _ = syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
}

// TestFirstThreadEnded: a process whose first thread has ended lives, and tells of itself
// what others do, by another thread.
func TestFirstThreadEnded(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	c := exec.Command(self)
	c.Env = []string{firstEndsVar + "=1", "TMPDIR=/nowhere/of-this-test"}
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
