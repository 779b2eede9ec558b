//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A watcher is a process of a few system calls that lives in the outer Landlock
// domain of one command. It can signal exactly the processes of that command,
// and they can neither signal nor trace it. It does on request what only it can
// do, and when its line breaks, because the domain is to be killed or because
// the server has died, it kills them all and ends.
type watcher struct {
	pid  int
	mu   sync.Mutex // one request at a time
	line int        // our end of its socket pair, -1 when it is gone
	last call       // the only slot that requests use
	wait call       // reads the next request; its orElse is what happens at the end of the line
	kill call
	rest [5]call
	buf  [1]byte
	pin  runtime.Pinner
}

// newWatcher starts a watcher from the calling thread, which must already be in
// the outer domain. It is not armed yet.
func newWatcher() (*watcher, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	defer unix.Close(pair[1])
	w := &watcher{line: pair[0]}
	w.pin.Pin(w)
	w.write(uintptr(pair[1]))
	w.pid, err = proc.Start(func() (int, error) { return spawn(unix.CLONE_VM, &w.rest[0]) })
	if err != nil {
		unix.Close(pair[0])
		w.pin.Unpin()
		return nil, err
	}
	return w, nil
}

// write sets down what the watcher does: leave our session, so that a signal to
// our process group spares it; keep nothing open but its line; serve requests.
func (w *watcher) write(fd uintptr) {
	buf := uintptr(unsafe.Pointer(&w.buf[0])) // w is on the heap and pinned
	steps := &w.rest
	steps[0] = call{nr: unix.SYS_SETSID}
	steps[1] = call{nr: unix.SYS_CLOSE_RANGE, args: [6]uintptr{0, fd - 1}}
	steps[2] = call{nr: unix.SYS_CLOSE_RANGE, args: [6]uintptr{fd + 1, uintptr(^uint32(0))}}
	w.wait = call{nr: unix.SYS_READ, args: [6]uintptr{fd, buf, 1}}
	steps[3] = call{nr: unix.SYS_WRITE, args: [6]uintptr{fd, buf, 1}}
	w.kill = call{ret: notRun, nr: unix.SYS_KILL, args: [6]uintptr{^uintptr(0), uintptr(unix.SIGKILL)}}
	steps[0].then(&steps[1])
	steps[1].then(&steps[2])
	steps[2].then(&w.wait)
	w.wait.next = &w.last
	w.last.then(&steps[3])
	steps[3].then(&w.wait)
}

var errGone = errors.New("the command's domain is closed")

// do has the watcher make one system call and returns its error.
func (w *watcher) do(nr uintptr, args ...uintptr) (unix.Errno, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line < 0 {
		return 0, errGone
	}
	w.last.nr = nr
	w.last.args = [6]uintptr{}
	copy(w.last.args[:], args)
	var b [1]byte
	if err := ignoringEINTR(func() error { _, err := unix.Write(w.line, b[:]); return err }); err != nil {
		return 0, errGone
	}
	n, err := 0, error(nil)
	err = ignoringEINTR(func() error { n, err = unix.Read(w.line, b[:]); return err })
	if err != nil || n == 0 {
		return 0, errGone
	}
	return w.last.errno(), nil
}

// signal sends sig to pid as kill(2) reads it, within the domain only.
func (w *watcher) signal(pid int, sig unix.Signal) (unix.Errno, error) {
	return w.do(unix.SYS_KILL, uintptr(pid), uintptr(sig))
}

// has reports whether task (a process or thread) belongs to the domain.
func (w *watcher) has(task int) bool {
	e, err := w.signal(task, 0)
	return err == nil && e == 0
}

// arm makes the end of the line deadly.
func (w *watcher) arm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wait.orElse = &w.kill
}

// prove fails unless the kernel keeps the watcher from reaching us, who are
// outside its domain.
func (w *watcher) prove() error {
	e, err := w.signal(os.Getpid(), 0)
	if err != nil {
		return err
	}
	if e != unix.EPERM {
		return fmt.Errorf("the signal scope does not hold: a signal to the outside gave %q instead of EPERM", e)
	}
	return nil
}

// notRun is the result of a call that has not been made.
const notRun = 1

// fire breaks the line and reports whether the watcher killed its domain for it.
func (w *watcher) fire() bool {
	w.close()
	return w.kill.ret != notRun
}

// close breaks the line, which kills whatever lives in the domain, and waits
// until that has been done.
func (w *watcher) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line < 0 {
		return
	}
	unix.Close(w.line)
	w.line = -1
	reapClone(w.pid)
	proc.Release(w.pid)
	w.pin.Unpin()
}

func ignoringEINTR(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}
