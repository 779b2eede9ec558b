//go:build amd64 || arm64

package namespaces

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// TestReserve: processes hold the memory, go before this program, and are known to be
// gone from the moment on that one is killed.
func TestReserve(t *testing.T) {
	for i := range reserveScores {
		r, err := NewReserve(8 << 20)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if !r.Held() {
			t.Error("it is not held")
		}
		for j, k := range r.keepers {
			if got := scoreOf(t, k.PID); got != reserveScores[j] || got == scoreOf(t, os.Getpid()) {
				t.Errorf("process %d has the score %s", k.PID, got)
			}
		}
		filetest.Must(t, proc.Signal(r.keepers[i].PID, unix.SIGKILL))
		if r.Held() {
			t.Error("it seems to hold on")
		}
	}
}

// TestReserveIsGivenBack: nothing is left of one that was closed.
func TestReserveIsGivenBack(t *testing.T) {
	r, err := NewReserve(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if r.Held() {
		t.Error("it seems to hold on")
	}
	for _, k := range r.keepers {
		if p, found := proc.Read(k.PID); found && p.Parent == os.Getpid() {
			t.Errorf("process %d is left", k.PID)
		}
	}
}

func scoreOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
	filetest.Must(t, err)
	return strings.TrimSpace(string(text))
}
