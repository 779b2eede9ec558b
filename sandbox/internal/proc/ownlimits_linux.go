package proc

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The walls around this program may refuse the limits of any other process, its own
// children's too: commands in namespaces may not change those of what holds their
// session together, and perstack-base may be such a command itself. What a process does
// with its own limits is refused nowhere. So a child that has stopped at its program's
// first instruction is made to call prlimit itself.

// prlimitBy is unix.Prlimit for a stopped child that the calling thread traces, and made
// by the child.
func prlimitBy(pid, resource int, limit, old *unix.Rlimit) error {
	const most = 128 // bytes below the stack pointer that belong to the program even so
	const room = uintptr(unsafe.Sizeof(*limit))
	c, err := stoppedAt(pid)
	if err != nil {
		return fmt.Errorf("reading the program's registers: %w", err)
	}
	at := (c.stack() - most - 2*room) &^ 15
	var set, get uintptr
	if limit != nil {
		set = at
		if err := poke(pid, set, bytesOf(limit)); err != nil {
			return err
		}
	}
	if old != nil {
		get = at + room
	}
	if err := c.call(pid, unix.SYS_PRLIMIT64, 0, uintptr(resource), set, get); err != nil {
		return err
	}
	if old == nil {
		return nil
	}
	n, err := unix.PtracePeekData(pid, get, bytesOf(old))
	return whole(n, int(room), err)
}

// call has the child make a system call, and puts back what that takes.
func (c childState) call(pid int, nr uintptr, args ...uintptr) (err error) {
	var before [len(systemCall)]byte
	n, err := unix.PtracePeekText(pid, c.next(), before[:])
	if err := whole(n, len(before), err); err != nil {
		return err
	}
	if err := poke(pid, c.next(), systemCall[:]); err != nil {
		return err
	}
	var e unix.Errno
	if err = c.calling(nr, args...).put(pid); err == nil {
		e, err = callResult(pid, c.next())
	}
	for _, back := range []error{poke(pid, c.next(), before[:]), c.put(pid)} {
		if err == nil {
			err = back
		}
	}
	if err == nil && e != 0 {
		err = e
	}
	return err
}

// callResult has a child go on until it has made the call for which it was prepared, which
// is at that address. A trap that stops it there is a signal of somebody else's.
func callResult(pid int, at uintptr) (unix.Errno, error) {
	var after childState
	for made := false; !made; made = after.next() != at {
		if err := unix.PtraceCont(pid, 0); err != nil {
			return 0, err
		}
		if !stopped(pid) {
			return 0, unix.ESRCH
		}
		var err error
		if after, err = stoppedAt(pid); err != nil {
			return 0, err
		}
	}
	const lastErrno = 4095
	if r := after.result(); r < 0 && r >= -lastErrno {
		return unix.Errno(-r), nil
	}
	return 0, nil
}

// bytesOf is the memory of a limit.
func bytesOf(limit *unix.Rlimit) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(limit)), unsafe.Sizeof(*limit))
}

// poke writes into a stopped child, also where it may only read.
func poke(pid int, at uintptr, text []byte) error {
	n, err := unix.PtracePokeData(pid, at, text)
	return whole(n, len(text), err)
}

// whole is err, or that less was moved than all.
func whole(n, all int, err error) error {
	if err == nil && n != all {
		err = unix.EIO
	}
	if err != nil {
		return fmt.Errorf("the memory of a program for %s that begins: %w", runtime.GOARCH, err)
	}
	return nil
}
