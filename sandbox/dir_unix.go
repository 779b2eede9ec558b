//go:build unix

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// A handle is a directory that entries are opened in by openat. One name
// without a separator and O_NOFOLLOW cannot lead anywhere else.
type handle struct {
	file *os.File
	fd   int
}

const (
	dirFlags  = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fileFlags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC
)

// openHandle opens rel, whose links are resolved. os.Root walks it again, so a
// link that came into the way meanwhile cannot lead out.
func openHandle(st *state, rel string) (handle, error) {
	file, err := st.root.OpenFile(rel, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return handle{}, err
	}
	return handle{file, int(file.Fd())}, nil
}

func (h handle) close() error { return h.file.Close() }

func (h handle) list() ([]fs.DirEntry, error) {
	if _, err := h.file.Seek(0, 0); err != nil {
		return nil, err
	}
	return h.file.ReadDir(-1)
}

func (h handle) openDir(name string) (handle, error) {
	fd, err := h.openat(name, dirFlags)
	if err != nil {
		return handle{}, err
	}
	return handle{os.NewFile(uintptr(fd), name), fd}, nil
}

func (h handle) openFile(name, abs string) (*os.File, error) {
	fd, err := h.openat(name, fileFlags)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), abs), nil
}

func (h handle) openat(name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(h.fd, name, flags, 0)
		runtime.KeepAlive(h.file)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// isLinkRefusal recognises O_NOFOLLOW's and O_DIRECTORY's refusals, and those
// of sockets and devices without a driver.
func isLinkRefusal(err error) bool {
	return errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EMLINK)
}
