//go:build amd64 || arm64

package broker

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// kill decides about a signal to one process or one group. The kernel knows the
// caller's own domain; in the session's others the domain's watcher sends it.
func (q *Question) kill() Answer {
	pid, sig := q.Arg(0), unix.Signal(q.Arg(1))
	if pid == -1 || pid == -unix.Getpgrp() {
		return Fail(unix.EPERM)
	}
	mine := q.broker.watcher
	if mine == nil {
		return q.signalDescendant(pid, sig)
	}
	e, err := mine.Signal(pid, 0)
	if err == nil && e != unix.EPERM {
		return Answer{Run: true}
	}
	return q.signalOthers(pid, sig)
}

// signalOthers sends a signal into the other domains of the session.
func (q *Question) signalOthers(pid int, sig unix.Signal) Answer {
	for _, w := range q.broker.session.watchers(true) {
		if w == q.broker.watcher {
			continue
		}
		if e, err := w.Signal(pid, sig); err == nil && e != unix.EPERM {
			return Fail(e)
		}
	}
	return q.refuseSignal(pid, sig)
}

// refuseSignal keeps mere questions whether a process lives off the record.
func (q *Question) refuseSignal(pid int, sig unix.Signal) Answer {
	if sig == 0 {
		return Fail(unix.EPERM)
	}
	if pid < 0 {
		return q.refuse(unix.EPERM, fmt.Sprintf("signal the process group %d", -pid), "")
	}
	return q.refuse(unix.EPERM, fmt.Sprintf("signal the process %d (%s)", pid, proc.Name(pid)), "")
}

// signalDescendant stands in where the kernel does not scope signals: a process
// that descends from a command is the session's. The pidfd keeps it from being
// mistaken for a later one.
func (q *Question) signalDescendant(pid int, sig unix.Signal) Answer {
	if pid <= 0 {
		return q.signalGroup(-pid, sig)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return failed(err)
	}
	defer unix.Close(fd)
	if !q.broker.session.descends(pid) {
		return q.refuseSignal(pid, sig)
	}
	return failed(unix.PidfdSendSignal(fd, sig, nil, 0))
}

func (q *Question) signalGroup(group int, sig unix.Signal) Answer {
	found := false
	for _, p := range proc.All() {
		if p.Group == group && group != 0 {
			if !q.broker.session.descends(p.PID) {
				return q.refuseSignal(-group, sig)
			}
			found = true
			_ = proc.Signal(p.PID, sig) // gone is as good
		}
	}
	if !found {
		return Fail(unix.ESRCH)
	}
	return Answer{}
}

// descends reports whether a process has a command of this session above it, or
// was adopted by us after its parents had ended.
func (c *Session) descends(pid int) bool {
	me := os.Getpid()
	for range 1000 { // deeper than any tree; a changing one cannot keep us
		p, ok := proc.Read(pid)
		if !ok || pid == me {
			return false
		}
		if p.Parent == me {
			return proc.Confined(pid)
		}
		pid = p.Parent
	}
	return false
}

// pidfdSignal is kill by descriptor. The asker could put another descriptor in
// its place, so it never makes the call itself: the signal goes to the process
// that was judged, from its domain's watcher, and the kernel judges once more.
func (q *Question) pidfdSignal() Answer {
	const wholeProcess = 2 // PIDFD_SIGNAL_THREAD_GROUP
	if flags := q.Arg(3); flags != 0 && flags != wholeProcess {
		return Fail(unix.EINVAL)
	}
	pid, sig := proc.PidfdTarget(q.inProc("fdinfo/%d", q.Arg(0))), unix.Signal(q.Arg(1))
	mine := q.broker.watcher
	switch {
	case pid == 0 || !q.valid():
		return Fail(unix.EBADF)
	case pid < 0: // it has ended
		return Fail(unix.ESRCH)
	case mine == nil:
		return q.signalDescendant(pid, sig)
	}
	if e, err := mine.Signal(pid, sig); err == nil && e != unix.EPERM {
		return Fail(e)
	}
	return q.signalOthers(pid, sig)
}

// taskSignal comes here only where the kernel does not scope signals: threads
// signal each other, nobody else.
func (q *Question) taskSignal() Answer {
	target := q.Arg(0)
	if q.nr == unix.SYS_TKILL && q.sameProcess(target) || target == q.process() {
		return Answer{Run: true}
	}
	return q.refuse(unix.EPERM, fmt.Sprintf("signal the process %d", target), "")
}
