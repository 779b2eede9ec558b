//go:build amd64 || arm64

package broker

import (
	"encoding/binary"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// Limits, scheduling and priority of a task are settled by user id alone, and the
// task is named by a number. That of the asker and of its process stay theirs as
// long as it waits, so for those the kernel goes on. Any other may be somebody
// else's by then, because its task can end, so for those the broker makes the
// call, if at all.

// limit answers for prlimit. To set limits is everybody's own affair; those of the
// domain's other tasks may be read, and nothing is lost when it is somebody else's by
// then: the file limits in /proc shows them to all.
func (q *Question) limit() Answer {
	task := q.Arg(0)
	if q.own(task) {
		return Answer{Run: true}
	}
	if still, release := q.identify(task); still != nil {
		release()
		if q.args[2] == 0 {
			return Answer{Run: true}
		}
	}
	return Fail(unix.EPERM)
}

// schedule answers for scheduling.
func (q *Question) schedule() Answer {
	if task := q.Arg(0); !q.own(task) {
		return q.schedulesOther(task)
	}
	return Answer{Run: true}
}

// priority is schedule for calls that say first what the number means.
func (q *Question) priority() Answer {
	which := q.Arg(0)
	if q.nr == unix.SYS_IOPRIO_SET {
		which-- // counts from one there
	}
	if which != 0 { // a group or a user reaches others
		return Fail(unix.EPERM)
	}
	if task := q.Arg(1); !q.own(task) {
		return q.schedulesOther(task)
	}
	return Answer{Run: true}
}

// own reports whether the number is the asker's or its process's.
func (q *Question) own(task int) bool {
	return task == int(q.tid) || task == q.process() && q.valid()
}

// schedulesOther makes the call for a thread of the asker's process or a process of
// its domain, with what the asker may do.
func (q *Question) schedulesOther(task int) Answer {
	args, keep, e := q.scheduling()
	if e != 0 {
		return Fail(e)
	}
	still, release := q.identify(task)
	if still == nil {
		return Fail(unix.EPERM)
	}
	defer release()
	if reusedSoon(task) {
		return Fail(unix.EPERM)
	}
	e = withKeptCaps(func() unix.Errno { // nothing between the two calls that could let time pass
		if e := still(); e != 0 {
			return unix.ESRCH
		}
		_, _, e := unix.RawSyscall6(uintptr(q.nr), args[0], args[1], args[2], 0, 0, 0)
		return e
	})
	runtime.KeepAlive(keep)
	return Fail(e)
}

// scheduling copies what the arguments point to, once; keep holds the copy.
func (q *Question) scheduling() (args [3]uintptr, keep []byte, e unix.Errno) {
	const maskSize, paramSize, attrSize, attrSizeMost = 1024, 4, 48, 56 // of the kernel's largest mask, sched_param, sched_attr
	args = [3]uintptr{uintptr(q.args[0]), uintptr(q.args[1]), uintptr(q.args[2])}
	at, size := 1, paramSize
	switch q.nr {
	case unix.SYS_SCHED_SETAFFINITY:
		at, size = 2, int(min(uint32(q.args[1]), maskSize))
		args[1] = uintptr(size)
	case unix.SYS_SCHED_SETSCHEDULER:
		at = 2
	case unix.SYS_SCHED_SETATTR:
		first := make([]byte, 4)
		if !q.read(q.args[1], first) {
			return args, nil, unix.EFAULT
		}
		if size = max(int(binary.NativeEndian.Uint32(first)), attrSize); size > attrSizeMost {
			return args, nil, unix.E2BIG
		}
	case unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET:
		return args, nil, 0
	}
	keep = make([]byte, max(size, 1))
	if size > 0 && !q.read(q.args[at], keep) {
		return args, nil, unix.EFAULT
	}
	if q.nr == unix.SYS_SCHED_SETATTR {
		binary.NativeEndian.PutUint32(keep, uint32(size)) // it may have been changed meanwhile
	}
	args[at] = uintptr(unsafe.Pointer(&keep[0]))
	return args, keep, 0
}

// identify returns what tells whether the number is still that of a thread of the
// asker's process, or of the process of its domain that it is now; nil when it is
// neither.
func (q *Question) identify(task int) (still func() unix.Errno, release func()) {
	if q.sameProcess(task) {
		process := q.process()
		return func() unix.Errno {
			_, _, e := unix.RawSyscall(unix.SYS_TGKILL, uintptr(process), uintptr(task), 0)
			return e
		}, func() {}
	}
	w := q.broker.watcher
	if w == nil {
		return nil, nil
	}
	fd, err := unix.PidfdOpen(task, 0)
	if err != nil {
		return nil, nil
	}
	if !w.Has(task) {
		unix.Close(fd)
		return nil, nil
	}
	return func() unix.Errno {
		_, _, e := unix.RawSyscall6(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(fd), 0, 0, 0, 0, 0)
		return e
	}, func() { unix.Close(fd) }
}

// reusedSoon reports whether a number is one of the next that the kernel gives
// away. What keeps the broker from its second call would have to last for more
// processes than that.
func reusedSoon(task int) bool {
	const next = 1024
	last, most := lastNumber("/proc/loadavg"), lastNumber("/proc/sys/kernel/pid_max")
	if last <= 0 || most <= 0 {
		return true
	}
	ahead := (task - last + most) % most
	return ahead > 0 && ahead <= next
}

// lastNumber reads the last field of a file, 0 when there is none.
func lastNumber(path string) int {
	text, _ := os.ReadFile(path)
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(fields[len(fields)-1])
	return n
}

// withKeptCaps runs f with no capability but those that commands keep.
func withKeptCaps(f func() unix.Errno) unix.Errno {
	runtime.LockOSThread()
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	err := unix.Capget(&hdr, &now[0])
	less := now
	less[0].Effective &= kernel.KeptCaps
	less[1].Effective = 0
	e := unix.EPERM
	if err == nil && unix.Capset(&hdr, &less[0]) == nil {
		e = f()
		err = unix.Capset(&hdr, &now[0])
	}
	if err == nil { // else the thread ends with the goroutine
		runtime.UnlockOSThread()
	}
	return e
}

func (q *Question) sameProcess(tid int) bool {
	_, err := os.Stat(q.inProc("task/%d", tid))
	return err == nil && q.valid()
}
