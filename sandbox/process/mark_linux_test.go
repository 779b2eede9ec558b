package process

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
)

// TestLivingServerKeepsItsCommands: a watchdog whose line was closed ends what it was
// told of. Only one whose server has died ends all that have the server's mark, which
// is the server's own while it starts a command.
func TestLivingServerKeepsItsCommands(t *testing.T) {
	for _, died := range []bool{false, true} {
		cmd := exec.Command("sleep", "1000")
		filetest.Must(t, proc.Expendable(cmd.Start))
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		server := os.Getppid()
		if died {
			server = -1
		}
		tree.Charge{Dirs: map[string]bool{t.TempDir(): true}}.EndAll(proc.OwnMark(), server, 0)
		select {
		case <-ended:
			if !died {
				t.Error("a command of a living server was ended")
			}
		case <-time.After(map[bool]time.Duration{false: 100 * time.Millisecond, true: time.Minute}[died]):
			if died {
				t.Error("a command has outlived its server")
			}
		}
		_ = unix.Kill(cmd.Process.Pid, unix.SIGKILL)
		<-ended
	}
}
