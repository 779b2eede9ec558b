package process

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/containers"
)

// actAsFarEngine runs a runner that does not see the server's sockets, as where the
// engine's machine is another one.
func actAsFarEngine(runner *exec.Cmd) error {
	stdin, err := runner.StdinPipe()
	if err != nil {
		return err
	}
	runner.Stdout, runner.Stderr = os.Stdout, os.Stderr
	if err := runner.Start(); err != nil {
		return err
	}
	// Nothing follows hello until the runner has answered, so no reader holds more of it.
	hello, err := remote.NewReader(os.Stdin, remote.MaxFromServer).Read()
	if err != nil {
		return err
	}
	hello.Hello.Socket += ".elsewhere"
	if err := remote.NewWriter(stdin, remote.MaxFromServer).Write(hello); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(stdin, os.Stdin)
		stdin.Close()
	}()
	return runner.Wait()
}

// TestAwayBySocketOrStreams: commands run through the socket where it can be reached,
// and through the container's streams where not. Of the socket no command finds anything.
func TestAwayBySocketOrStreams(t *testing.T) {
	for mode, direct := range map[string]bool{"plain": true, "far": false} {
		t.Run(mode, func(t *testing.T) {
			s := awayCommands(t, mode, Config{}).NewShell()
			big := strings.Repeat("0123456789abcdef", remote.MaxBody/8)
			c := sh("cat")
			c.Stdin, c.Keep = []byte(big), 2*len(big)
			if res := run(t, s, c); text(res.Stdout) != big {
				t.Errorf("%d bytes came back of %d", len(text(res.Stdout)), len(big))
			}
			b := s.away.berths[0]
			if b.Welcome.Direct != direct {
				t.Errorf("through the socket: %v, want %v", b.Welcome.Direct, direct)
			}
			if _, err := os.Lstat(filepath.Join(b.Tree, "runner.sock")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket is still there: %v", err)
			}
			if got := text(run(t, s, sh("ls -l /proc/self/fd")).Stdout); strings.Contains(got, "socket:") {
				t.Errorf("a command has the runner's socket:\n%s", got)
			}
			b.Conn.Fail(containers.ErrSilent) // as when the engine is lost
			<-b.Ended
			if res := run(t, s, sh("echo again")); text(res.Stdout) != "again\n" || len(res.Refused) == 0 {
				t.Errorf("after its end: %q %q", text(res.Stdout), res.Refused)
			}
		})
	}
}

// TestRunnersThatMisuseTheSocket: they are given up, and harm nobody.
func TestRunnersThatMisuseTheSocket(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"takeover:both streams", "takeover:not direct"} {
		t.Run(mode, func(t *testing.T) {
			s := awayCommands(t, mode, Config{}).NewShell()
			ends(t, "a command", func() {
				for range 50 { // the second stream is looked at beside the first
					if _, err := s.Run(t.Context(), sh("sleep 0.1")); err != nil {
						var lost *ContainerError
						if !errors.As(err, &lost) {
							t.Errorf("%v", err)
						}
						return
					}
				}
				t.Error("commands run on")
			})
		})
	}
}
