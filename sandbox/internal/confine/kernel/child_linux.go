//go:build amd64 || arm64

package kernel

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Call is one step of a child process that runs no Go: a system call, its
// result, and where to go on: next when the result is positive, orElse when it
// is not; nil ends the process. An error is like no result where must is 0, ends
// the process where it is 1, and leads to the call of that address otherwise. The
// assembly knows this layout.
type Call struct {
	Nr     uintptr
	Args   [6]uintptr
	Ret    uintptr
	Next   *Call
	OrElse *Call
	Must   uintptr
}

// Then makes n follow c whatever c's result is.
func (c *Call) Then(n *Call) { c.Next, c.OrElse = n, n }

// Errno returns the error of a finished call, 0 for none.
func (c *Call) Errno() unix.Errno { return ErrnoOf(int(c.Ret)) }

// NotRun is the result of a call that has not been made.
const NotRun = 1

// ErrnoOf returns the error in what the kernel returned, 0 for none.
func ErrnoOf(ret int) unix.Errno {
	if ret < 0 && ret > -4096 {
		return unix.Errno(-ret)
	}
	return 0
}

// CloneRun makes a process as clone(2) does and has it run the calls from first
// on. Signals must be blocked: a handler would run Go in it.
//
//go:noescape
func CloneRun(flags uintptr, first *Call) (pid int)

// Spawn runs calls in a process of their own, which shares our memory (CLONE_VM
// in flags) or has a copy of it (0). The records must stay reachable until the
// process has ended, which ReapClone waits for. It must not wait here, where the
// runtime cannot stop the thread: the child may need the broker.
func Spawn(flags uintptr, first *Call) (pid int, err error) {
	every, old := ^uint64(0), uint64(0)
	sigmask(&every, &old)
	pid = CloneRun(flags, first)
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

// ReapClone waits for a process made by Spawn.
func ReapClone(pid int) {
	for {
		if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != unix.EINTR {
			return
		}
	}
}
