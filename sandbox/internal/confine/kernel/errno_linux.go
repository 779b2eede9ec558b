//go:build amd64 || arm64

package kernel

import (
	"errors"

	"golang.org/x/sys/unix"
)

var ErrGone = errors.New("the command's domain is closed")

func IgnoringEINTR(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}
