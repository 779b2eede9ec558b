//go:build amd64 || arm64

package threads

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// watchers are all that this program has, of every session, by process id.
var watchers sync.Map

// machinery reports whether a process, thread or (negative) group is what holds
// the commands: a watcher, the server, its group, or one of its threads. No
// command may stop, end or steer it, whichever domain it lives in.
func machinery(pid int) bool {
	if pid < 0 {
		pid = -pid
	}
	_, watches := watchers.Load(pid)
	return pid <= 1 || watches || pid == unix.Getpgrp() || unix.Tgkill(os.Getpid(), pid, 0) == nil
}

// claimed reports whether a process belongs to a domain whose watcher works.
func claimed(pid int) (is bool) {
	watchers.Range(func(_, w any) bool {
		is = w.(*Watcher).Has(pid)
		return !is
	})
	return is
}

// A watcher that does nothing for one wait is told to continue, should something
// have stopped it; after so many waits it is given up, and earlier when it stands
// still whatever it is told. They are counted one by one because a pause of the
// whole system ends only one of them.
const (
	oneWait    = 100 * time.Millisecond
	maxWaits   = 100
	maxStopped = 10
)

// urge waits until the watcher has done something, and reports whether it has.
func (w *Watcher) urge(done func(time.Duration) bool) bool {
	for waits, stopped := 0, 0; waits < maxWaits && stopped < maxStopped; waits++ {
		if done(oneWait) {
			return true
		}
		if p, ok := proc.Read(w.PID); ok && p.Stopped {
			stopped++
		}
		_ = proc.Signal(w.PID, unix.SIGCONT) // gone shows in the next wait
	}
	return false
}

// answered waits for an answer on the line, or its end.
func (w *Watcher) answered(most time.Duration) bool {
	n := 0
	_ = kernel.IgnoringEINTR(func() (err error) {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(w.line), Events: unix.POLLIN}}, int(most.Milliseconds()))
		return err
	})
	return n > 0
}

// hasEnded waits for the watcher's end.
func (w *Watcher) hasEnded(most time.Duration) bool {
	select {
	case <-w.ended:
		return true
	case <-time.After(most):
		return false
	}
}

// gone reports whether the watcher has ended.
func (w *Watcher) gone() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// giveUp ends a watcher that fails; the guard of its domain takes over.
func (w *Watcher) giveUp() {
	_ = proc.Signal(w.PID, unix.SIGKILL) // its id is ours until it is collected
	<-w.ended
}

// awaitEnd tells of the watcher's end, without a thread where the runtime can wait.
func (w *Watcher) awaitEnd() {
	defer close(w.ended)
	if fd, err := unix.PidfdOpen(w.PID, unix.PIDFD_NONBLOCK); err == nil {
		file := os.NewFile(uintptr(fd), "watcher")
		defer file.Close()
		if conn, err := file.SyscallConn(); err == nil {
			_ = conn.Read(func(fd uintptr) bool { // what it cannot wait for is waited for below
				n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
				return err == nil && n > 0
			})
		}
	}
	_ = kernel.IgnoringEINTR(func() error {
		return unix.Waitid(unix.P_PID, w.PID, nil, unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
	})
}

// guard kills the domain when its watcher has ended before it.
func (d *Domain) guard() {
	select {
	case <-d.Watcher.ended:
		if d.Alive() {
			_ = d.Kill() // whoever ends the command hears of what survives
		}
	case <-d.done:
	}
}
