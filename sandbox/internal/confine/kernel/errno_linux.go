//go:build amd64 || arm64

package kernel

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ErrGone: the process that was asked has ended.
var ErrGone = errors.New("the command's domain is closed")

// IgnoringEINTR makes a call again until no signal interrupts it.
func IgnoringEINTR(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// AsErrno is the number of an error of the kernel, 0 for none and EIO for another's.
func AsErrno(err error) unix.Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(unix.Errno); ok {
		return e
	}
	return unix.EIO
}
