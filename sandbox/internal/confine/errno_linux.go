//go:build amd64 || arm64

package confine

import (
	"errors"

	"golang.org/x/sys/unix"
)

var errGone = errors.New("the command's domain is closed")

func ignoringEINTR(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}
