//go:build unix

package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// openListing opens a directory to be listed. A file of os.Root asks for the status
// of every entry that it lists; a second descriptor of the same directory does not.
func OpenListing(dir *os.Root) (*os.File, error) {
	file, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "."), nil
}
