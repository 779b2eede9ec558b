//go:build amd64 || arm64

package confine

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"golang.org/x/sys/unix"
)

// usurp listens on [::1] where somebody else has the port on 127.0.0.1, and tells
// what it is sent. With PROBE_EARLY it has its address before the other listens.
func usurp() error {
	s, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	at := &unix.SockaddrInet6{Addr: [16]byte{15: 1}}
	if os.Getenv("PROBE_EARLY") == "" {
		at.Port = number("PROBE_PORT")
	}
	if err := unix.Bind(s, at); err != nil {
		return err
	}
	bound, err := unix.Getsockname(s)
	if err != nil {
		return err
	}
	if err := tell("bound", bound.(*unix.SockaddrInet6).Port); err != nil {
		return err
	}
	for os.Getenv("PROBE_EARLY") != "" {
		if _, err := os.Stat("go"); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := unix.Listen(s, 5); err != nil {
		return err
	}
	if err := tell("listens", 0); err != nil {
		return err
	}
	conn, _, err := unix.Accept(s)
	if err != nil {
		return err
	}
	b := make([]byte, 100)
	n, err := unix.Read(conn, b)
	fmt.Printf("%s\n", b[:max(n, 0)])
	return err
}

// tell writes a number where the test looks for it.
func tell(name string, n int) error {
	return errors.Join(os.WriteFile(name+".new", []byte(fmt.Sprint(n)), 0o600), os.Rename(name+".new", name))
}

// listenTwice listens on one port in both families, and connects to both.
func listenTwice() error {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	second, err := net.Listen("tcp", fmt.Sprintf("[::1]:%d", first.Addr().(*net.TCPAddr).Port))
	if err != nil {
		return err
	}
	for _, l := range []net.Listener{first, second} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		conn.Close()
	}
	return nil
}

// TestNobodysPortIsUsurped: what a client sends to localhost, where somebody outside
// the session listens, comes to no command that listens in the other family.
func TestNobodysPortIsUsurped(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip(err)
	} else {
		l.Close()
	}
	for _, early := range []string{"", "1"} {
		p := newPlace(t)
		if got, out := p.usurped(t, nil, early); !got {
			t.Fatalf("unconfined the port cannot be had either: %s", out)
		}
		p = newPlace(t)
		if got, out := p.usurped(t, confiner(t, p.policy(), kernel.Missing{}), early); got || !strings.Contains(out, unix.EADDRINUSE.Error()) {
			t.Errorf("early %q: a command has got the token, or failed otherwise: %s", early, out)
		}
		p = newPlace(t)
		if got, _ := p.usurped(t, confiner(t, p.policy(), kernel.Missing{GetFD: true}), early); got {
			t.Errorf("early %q: without duplicates a command has got the token", early)
		}
	}
	p := newPlace(t)
	exe, err := os.Executable()
	must(t, err)
	if r := p.do(t, confiner(t, p.policy(), kernel.Missing{}), []string{probeVar + "=both"}, exe); r.err != nil {
		t.Errorf("the session's own port: %v %s", r.err, r.out)
	}
}

// usurped runs the command beside a server, whose client then sends a token, and
// reports whether the command has got it.
func (p place) usurped(t *testing.T, c *threads.Confiner, early string) (got bool, out string) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	has := func(name string) bool { _, err := os.Stat(filepath.Join(p.ws, name)); return err == nil }
	cmd := exec.Command(exe)
	cmd.Dir = p.ws
	cmd.Env = append(os.Environ(), probeVar+"=usurp", "PROBE_EARLY="+early)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	start := func() (ended chan bool) {
		if c == nil {
			must(t, cmd.Start())
		} else {
			_, err := c.Start(starting(cmd))
			must(t, err)
		}
		ended = make(chan bool)
		go func() {
			if c == nil {
				_ = cmd.Wait()
			} else {
				_ = wait(cmd)
			}
			close(ended)
		}()
		return ended
	}
	address := "127.0.0.1:0"
	var ended chan bool
	if early != "" {
		ended = start()
		eventually(t, "the command has no address", func() bool { return has("bound") })
		port, err := os.ReadFile(filepath.Join(p.ws, "bound"))
		must(t, err)
		address = "127.0.0.1:" + string(port)
	}
	_, port, _ := net.SplitHostPort(serve(t, "tcp", address))
	cmd.Env = append(cmd.Env, "PROBE_PORT="+port)
	if early == "" {
		ended = start()
	}
	must(t, os.WriteFile(filepath.Join(p.ws, "go"), nil, 0o644))
	over := func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
	eventually(t, "the command neither listens nor ends", func() bool { return has("listens") || over() })
	for _, host := range []string{"::1", "127.0.0.1"} { // as a client does with localhost
		if conn, err := net.Dial("tcp", net.JoinHostPort(host, port)); err == nil {
			_, _ = conn.Write([]byte("token"))
			conn.Close()
			break
		}
	}
	if has("listens") {
		<-ended
	}
	eventually(t, "the command goes on", over)
	return strings.Contains(text.String(), "token"), text.String()
}
