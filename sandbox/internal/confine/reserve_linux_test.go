//go:build amd64 || arm64

package confine

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// TestReserve: a process holds the memory, goes before this program, and is known to be
// gone from the moment on that it is killed.
func TestReserve(t *testing.T) {
	const size = 8 << 20
	r, err := NewReserve(size)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !r.Held() || score(t, r.keeper.pid) != reserveScore || score(t, os.Getpid()) == reserveScore {
		t.Errorf("held: %v, score %s", r.Held(), score(t, r.keeper.pid))
	}
	if p, _ := proc.Read(r.keeper.pid); p.Parent != os.Getpid() {
		t.Errorf("it is a child of %d", p.Parent)
	}
	must(t, proc.Signal(r.keeper.pid, unix.SIGKILL))
	if r.Held() {
		t.Error("it seems to hold on")
	}
}

// TestReserveIsGivenBack: nothing is left of one that was closed.
func TestReserveIsGivenBack(t *testing.T) {
	r, err := NewReserve(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	pid := r.keeper.pid
	r.Close()
	if r.Held() {
		t.Error("it seems to hold on")
	}
	if p, found := proc.Read(pid); found && p.Parent == os.Getpid() {
		t.Errorf("process %d is left", pid)
	}
}
