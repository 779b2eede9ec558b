//go:build amd64 || arm64

package confine

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A call is one step of a child process that runs no Go: a system call, its
// result, and where to go on: next when the result is positive, orElse when it
// is not; nil ends the process. An error is like no result where must is 0, ends
// the process where it is 1, and leads to the call of that address otherwise. The
// assembly knows this layout.
type call struct {
	nr     uintptr
	args   [6]uintptr
	ret    uintptr
	next   *call
	orElse *call
	must   uintptr
}

// then makes n follow c whatever c's result is.
func (c *call) then(n *call) { c.next, c.orElse = n, n }

// errno returns the error of a finished call, 0 for none.
func (c *call) errno() unix.Errno { return errnoOf(int(c.ret)) }

// notRun is the result of a call that has not been made.
const notRun = 1

// errnoOf returns the error in what the kernel returned, 0 for none.
func errnoOf(ret int) unix.Errno {
	if ret < 0 && ret > -4096 {
		return unix.Errno(-ret)
	}
	return 0
}

// cloneRun makes a process as clone(2) does and has it run the calls from first
// on. Signals must be blocked: a handler would run Go in it.
//
//go:noescape
func cloneRun(flags uintptr, first *call) (pid int)

// spawn runs calls in a process of their own, which shares our memory (CLONE_VM
// in flags) or has a copy of it (0). The records must stay reachable until the
// process has ended, which reapClone waits for. It must not wait here, where the
// runtime cannot stop the thread: the child may need the broker.
func spawn(flags uintptr, first *call) (pid int, err error) {
	every, old := ^uint64(0), uint64(0)
	sigmask(&every, &old)
	pid = cloneRun(flags, first)
	sigmask(&old, nil)
	if pid < 0 {
		return 0, fmt.Errorf("clone: %w", unix.Errno(-pid))
	}
	return pid, nil
}

//go:nosplit
func sigmask(set, old *uint64) {
	const setMask = 2 // SIG_SETMASK
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, setMask,
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
}

// reapClone waits for a process made by spawn.
func reapClone(pid int) {
	for {
		if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != unix.EINTR {
			return
		}
	}
}
