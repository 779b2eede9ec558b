//go:build unix

package proc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Signal sends sig to a process, or with a negative id to a process group. It is
// the only place that signals by number: 0 and -1 would reach our own group and
// everybody, 1 and the group of 1 the system itself.
func Signal(pid int, sig syscall.Signal) error {
	if pid >= -1 && pid <= 1 {
		return unix.EINVAL
	}
	return unix.Kill(pid, sig)
}
