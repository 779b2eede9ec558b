package process

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
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
			if b.welcome.Direct != direct {
				t.Errorf("through the socket: %v, want %v", b.welcome.Direct, direct)
			}
			if _, err := os.Lstat(filepath.Join(b.tree, directName)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket is still there: %v", err)
			}
			if got := text(run(t, s, sh("ls -l /proc/self/fd")).Stdout); strings.Contains(got, "socket:") {
				t.Errorf("a command has the runner's socket:\n%s", got)
			}
			b.conn.fail(errSilent) // as when the engine is lost
			<-b.ended
			if res := run(t, s, sh("echo again")); text(res.Stdout) != "again\n" || len(res.Refused) == 0 {
				t.Errorf("after its end: %q %q", text(res.Stdout), res.Refused)
			}
		})
	}
}

// TestDirectTakesOnlyTheRunner: who does not know the token is not let in, and keeps
// nobody out who does; after that nobody listens.
func TestDirectTakesOnlyTheRunner(t *testing.T) {
	tree, err := os.MkdirTemp("", "s-") // short enough for the name of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(tree) })
	d := openDirect(tree)
	if d == nil {
		t.Fatal("no socket")
	}
	hello := &remote.Hello{}
	d.offer(hello, tree)
	stranger, err := net.Dial("unix", string(hello.Socket))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Write(bytes.Repeat([]byte("0"), len(hello.Token))); err != nil {
		t.Fatal(err)
	}
	runner := dialDirect(hello)
	if runner == nil {
		t.Fatal("the runner does not reach the socket")
	}
	defer runner.Close()
	conn, err := d.accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := runner.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if b := make([]byte, 1); readFull(conn, b) != nil || b[0] != 'x' {
		t.Errorf("what was let in is not the runner: %q", b)
	}
	if err := readFull(stranger, make([]byte, 1)); err == nil {
		t.Error("a stranger was let in")
	}
	if late := dialDirect(hello); late != nil {
		late.Close()
		t.Error("somebody could connect when the runner had")
	}
	if _, err := (*direct)(nil).accept(); !errors.Is(err, errNotDirect) {
		t.Errorf("accepted where there is no socket: %v", err)
	}
}

func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	return err
}

// TestRunnersThatMisuseTheSocket: they are given up, and harm nobody.
func TestRunnersThatMisuseTheSocket(t *testing.T) {
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
