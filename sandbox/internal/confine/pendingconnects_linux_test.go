//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"golang.org/x/sys/unix"
)

// connectLater has connects wait at a server of its own, gives up the server, and
// waits for what answers them.
func connectLater() error {
	at := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_ = unix.SetsockoptInt(l, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err := errors.Join(unix.Bind(l, at), unix.Listen(l, 0)); err != nil {
		return err
	}
	to, err := unix.Getsockname(l)
	if err != nil {
		return err
	}
	var waiting []unix.PollFd
	for range 12 {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_ = unix.Connect(s, to)
		if !connects(s) {
			_ = unix.SetsockoptLinger(s, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
			defer unix.Close(s)
			continue
		}
		waiting = append(waiting, unix.PollFd{Fd: int32(s), Events: unix.POLLIN})
	}
	if len(waiting) == 0 {
		return errors.New("no connect waits")
	}
	unix.Close(l)
	port := []byte(fmt.Sprint(to.(*unix.SockaddrInet4).Port))
	if err := errors.Join(os.WriteFile("port.new", port, 0o600), os.Rename("port.new", "port")); err != nil {
		return err
	}
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline) && len(waiting) > 0; {
		_, _ = unix.Poll(waiting, 100)
		var left []unix.PollFd
		for _, w := range waiting {
			b := make([]byte, 20)
			switch n, err := unix.Read(int(w.Fd), b); {
			case n > 0:
				fmt.Println("connected to", string(b[:n]))
				return nil
			case err == unix.EAGAIN:
				left = append(left, w)
			}
		}
		waiting = left
	}
	return errors.New("nobody answers")
}

// TestPendingConnectsReachNobodyElse: what a session's server has not answered when
// it is given up does not reach the one of somebody else that listens there next.
func TestPendingConnectsReachNobodyElse(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	for _, name := range []string{"unconfined", "here", "no duplicates"} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			var c *threads.Confiner
			if name != "unconfined" {
				c = confiner(t, p.policy(), kernel.Missing{GetFD: name == "no duplicates"})
			}
			stop := make(chan struct{})
			stopped := make(chan error)
			go func() { stopped <- p.listenNext(stop) }()
			r := p.do(t, c, []string{probeVar + "=pending"}, exe)
			close(stop)
			if err := <-stopped; err != nil && c == nil {
				t.Fatal(err)
			}
			reached := strings.Contains(r.out, "connected to somebody else")
			if c == nil && !reached {
				t.Errorf("unconfined nobody is reached: nothing is proven: %v %s", r.err, r.out)
			}
			if c != nil && (reached || r.err == nil) {
				t.Errorf("somebody else is reached: %s", r.out)
			}
		})
	}
}

// listenNext listens on the port that a command in the place gave up.
func (p place) listenNext(stop chan struct{}) error {
	return p.listenAs(stop, func(port []byte) (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:"+string(port)) })
}

// listenAs listens as soon as the command has given its address up.
func (p place) listenAs(stop chan struct{}, listen func([]byte) (net.Listener, error)) error {
	var l net.Listener
	for err := errors.New("not up"); err != nil; time.Sleep(time.Millisecond) {
		select {
		case <-stop:
			return err
		default:
		}
		var port []byte
		if port, err = os.ReadFile(filepath.Join(p.ws, "port")); err == nil {
			l, err = listen(port)
		}
	}
	defer l.Close()
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			_, _ = conn.Write([]byte("somebody else"))
		}
	}()
	<-stop
	return nil
}

// TestFullServersAreWaitedFor: a server of the session that is slow to accept is
// reached by all who connect, whether they wait for it or not.
func TestFullServersAreWaitedFor(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	p := newPlace(t)
	if r := p.do(t, confiner(t, p.policy(), kernel.Missing{}), []string{probeVar + "=full"}, exe); r.err != nil {
		t.Errorf("%v %s", r.err, r.out)
	}
}

// connectFull connects without and with waiting to a server that accepts late.
func connectFull() error {
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Bind(l, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(l, 0)); err != nil {
		return err
	}
	to, err := unix.Getsockname(l)
	if err != nil {
		return err
	}
	const many = 20
	results := make(chan error, many)
	for i := range many {
		go func() {
			s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|i%2*unix.SOCK_NONBLOCK, 0)
			if err == nil {
				err = unix.Connect(s, to)
			}
			if err == unix.EINPROGRESS {
				_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s), Events: unix.POLLOUT}}, 60_000)
				_, err = unix.Write(s, []byte("x"))
			}
			results <- err
		}()
	}
	time.Sleep(500 * time.Millisecond) // for as long they wait
	go func() {
		for {
			_, _, _ = unix.Accept(l)
		}
	}()
	for range many {
		if err := <-results; err != nil {
			return err
		}
	}
	return nil
}

// connectByName has connects wait at an abstract socket of its own, and gives it up.
func connectByName() error {
	at := &unix.SockaddrUnix{Name: os.Getenv("PROBE_ABSTRACT")}
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Bind(l, at), unix.Listen(l, 0)); err != nil {
		return err
	}
	results := make(chan string, broker.WaitingConnects)
	for range broker.WaitingConnects {
		go func() {
			s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				err = unix.Connect(s, at)
			}
			b, n := make([]byte, 20), 0
			if err == nil {
				_ = unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 20})
				n, _ = unix.Read(s, b)
			}
			results <- string(b[:max(n, 0)])
		}()
	}
	time.Sleep(time.Second) // so long that the broker asks seldom
	if err := tell("port", 0); err != nil {
		return err
	}
	unix.Close(l)
	for range broker.WaitingConnects {
		if text := <-results; text != "" {
			fmt.Println("connected to", text)
			return nil
		}
	}
	return errors.New("nobody answers")
}

// TestNamesOfOthersAreNotReached: a connect that waits at an abstract socket of the
// session reaches nobody else who takes its name.
func TestNamesOfOthersAreNotReached(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	p := newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{})
	name := fmt.Sprintf("@confine-name-%d", os.Getpid())
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		stopped <- p.listenAs(stop, func([]byte) (net.Listener, error) { return net.Listen("unix", name) })
	}()
	r := p.do(t, c, []string{probeVar + "=by-name", "PROBE_ABSTRACT=" + name}, exe)
	close(stop)
	must(t, <-stopped)
	if r.err == nil || strings.Contains(r.out, "connected to") {
		t.Errorf("somebody else is reached: %s", r.out)
	}
}

// connects reports whether a socket waits for the other side.
func connects(sock int) bool {
	const synSent = 2 // TCP_SYN_SENT
	info, err := unix.GetsockoptTCPInfo(sock, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && info.State == synSent
}
