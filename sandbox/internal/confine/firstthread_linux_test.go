//go:build amd64 || arm64

package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// firstEndsVar makes the test binary a program whose first thread ends and whose others go
// on: the system shows it as one that has ended. It names a file for its id.
const firstEndsVar = "CONFINE_TEST_FIRST_ENDS"

func beWithoutFirst(file string) { // on the first thread
	go func() {
		id := strconv.Itoa(os.Getpid())
		for proc.StatusField(os.Getpid(), "State")[:1] != "Z" {
		}
		_ = os.WriteFile(file+".new", []byte(id), 0o644)
		_ = os.Rename(file+".new", file)
		select {}
	}()
	_, _, _ = syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
}

// TestKillFirstThreadEnded: a kill ends also daemons whose first thread has ended.
func TestKillFirstThreadEnded(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	for name, without := range map[string]kernel.Missing{"scope": {}, "descent": {LandlockAbove: 5}, "no broker": {LandlockAbove: 5, Broker: true}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			c := confiner(t, p.policy(), without)
			cmd := exec.Command("/bin/sh", "-c", `(setsid "$0" &) & sleep 1005`, exe)
			cmd.Dir, cmd.Env = p.ws, append(os.Environ(), firstEndsVar+"=daemon")
			d, err := c.Start(starting(cmd))
			must(t, err)
			var pid int
			eventually(t, "there is no such daemon", func() bool {
				text, _ := os.ReadFile(filepath.Join(p.ws, "daemon"))
				pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
				return pid > 0
			})
			defer unix.Kill(pid, unix.SIGKILL)
			must(t, d.Kill())
			_ = wait(cmd)
			eventually(t, "it has survived", func() bool { return unix.Kill(pid, 0) == unix.ESRCH })
			waitDone(t, d)
		})
	}
}
