//go:build amd64 || arm64

package kernel

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// InstallFilter puts the calling thread under the filter and returns the
// listener for its questions, -1 when none was asked for.
func InstallFilter(code []unix.SockFilter, listen bool) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// The filter is no reason to slow down speculation (before 5.16 it was).
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW)
	if listen {
		flags |= unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	fd, e := seccomp(flags, &prog)
	if e == unix.EINVAL && listen { // before 5.19: signals may interrupt a question
		fd, e = seccomp(flags&^unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog)
	}
	if e != 0 {
		return -1, fmt.Errorf("seccomp: %w", e)
	}
	if !listen {
		return -1, nil
	}
	return fd, nil
}

func seccomp(flags uintptr, prog *unix.SockFprog) (int, unix.Errno) {
	fd, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(prog)))
	return int(fd), e
}
