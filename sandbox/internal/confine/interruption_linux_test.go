//go:build amd64 || arm64

package confine

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"golang.org/x/sys/unix"
)

func init() {
	probeTable["signal-receive"] = escape{try: func() error { return signalWaiting(receiveForEver) }}
	probeTable["signal-connect"] = escape{try: func() error { return signalWaiting(connectForEver) }}
}

// signalWaiting signals a thread that waits in a call which does not end, and hears
// whether the signal comes.
func signalWaiting(wait func(started chan<- error)) error {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, unix.SIGUSR1)
	started, tid := make(chan error, 1), make(chan int, 1)
	go func() {
		runtime.LockOSThread()
		tid <- unix.Gettid()
		wait(started)
	}()
	thread := <-tid
	if err := <-started; err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond) // so that the broker has the question
	if err := unix.Tgkill(os.Getpid(), thread, unix.SIGUSR1); err != nil {
		return err
	}
	select {
	case <-heard:
		return nil
	case <-time.After(patience):
		return errors.New("the signal does not come")
	}
}

func receiveForEver(started chan<- error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	started <- err
	_ = kernel.IgnoringEINTR(func() error { _, _, err := unix.Recvfrom(s, make([]byte, 9), 0); return err })
}

// connectForEver connects to a socket that has no room for one more.
func connectForEver(started chan<- error) {
	dial := func(kind int) (int, error) {
		s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|kind, 0)
		if err != nil {
			return -1, err
		}
		return s, unix.Connect(s, &unix.SockaddrUnix{Name: "full.sock"})
	}
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Bind(l, &unix.SockaddrUnix{Name: "full.sock"}), unix.Listen(l, 0))
	}
	for err == nil {
		_, err = dial(unix.SOCK_NONBLOCK)
	}
	if err == unix.EAGAIN {
		err = nil
	}
	started <- err
	_ = kernel.IgnoringEINTR(func() error { _, err := dial(0); return err })
}

// alarmed is a program of one thread, which hears a signal while it waits for a datagram:
// its handler ends the wait, or, where the call goes on, has a child send what it waits for.
const alarmed = `
import os, signal, socket, sys
class Over(Exception): pass
def over(*_): raise Over
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0))
signal.signal(signal.SIGALRM, over); signal.setitimer(signal.ITIMER_REAL, 0.3)
try: s.recvfrom(9); sys.exit("it gets something")
except Over: pass
r, w = os.pipe(); os.set_blocking(w, False)
if os.fork() == 0:
    os.read(r, 1)
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"hello", s.getsockname()); os._exit(0)
signal.signal(signal.SIGALRM, lambda *_: None); signal.siginterrupt(signal.SIGALRM, False)
signal.set_wakeup_fd(w); signal.setitimer(signal.ITIMER_REAL, 0.3)
got = s.recvfrom(9)[0].decode(); os.wait(); print(got)
`

// TestSignalsReachWhoWaits: a signal has its handler run while a command waits in a call
// that the broker makes for it.
func TestSignalsReachWhoWaits(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	p := newPlace(t)
	mechanisms := map[string]*threads.Confiner{"threads": confiner(t, p.policy(), kernel.Missing{}), "outside": nil}
	for name, c := range mechanisms {
		for _, probe := range []string{"signal-receive", "signal-connect"} {
			_ = os.Remove(p.ws + "/full.sock")
			if r := p.do(t, c, []string{probeVar + "=" + probe}, exe); r.err != nil {
				t.Errorf("%s, %s: %v %s", name, probe, r.err, r.out)
			}
		}
		python, err := exec.LookPath("python3")
		if err != nil {
			t.Log("there is no program of one thread")
			continue
		}
		if r := p.do(t, c, nil, python, "-c", alarmed); r.err != nil || r.out != "hello\n" {
			t.Errorf("%s, one thread: %v %q", name, r.err, r.out)
		}
	}
}
