package process

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// TestKeeperLost: when the first process of a session's namespaces is killed, what runs
// there ends, and the next command gets new ones.
func TestKeeperLost(t *testing.T) {
	s := isolatedShell(t, Config{})
	for round := range 3 {
		namespace := strings.TrimSpace(text(run(t, s, sh("sleep 1000 >/dev/null 2>&1 & readlink /proc/self/ns/pid")).Stdout))
		keepers := 0
		for _, p := range proc.All() {
			if link, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.PID)); link != namespace || proc.Name(p.PID) != "keeper" {
				continue
			}
			keepers++
			if err := proc.Signal(p.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if keepers != 1 {
			t.Fatalf("%d processes keep the namespaces %q", keepers, namespace)
		}
		ends(t, "the processes of round "+fmt.Sprint(round), func() {
			for s.session.cage != nil && !s.session.cage.Fallen() {
			}
		})
	}
	if got := text(run(t, s, sh("ps -e -o comm= | grep -c sleep; echo here")).Stdout); got != "0\nhere\n" {
		t.Errorf("%q", got)
	}
}
