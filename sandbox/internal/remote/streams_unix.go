//go:build unix

package remote

import (
	"os"

	"golang.org/x/sys/unix"
)

// moved is a standard stream under another number, which no child inherits; at its own
// is another file from then on.
func moved(stream, other *os.File) (*os.File, error) {
	at := int(stream.Fd())
	fd, err := unix.FcntlInt(uintptr(at), unix.F_DUPFD_CLOEXEC, 3)
	if err == nil {
		err = dupOver(int(other.Fd()), at)
	}
	return os.NewFile(uintptr(fd), stream.Name()), err
}
