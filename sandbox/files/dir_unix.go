//go:build unix

package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
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

// openHandle opens rel, whose links are resolved.
func openHandle(st *state, rel string) (handle, error) {
	dir, err := st.pin(rel)
	if err != nil {
		return handle{}, err
	}
	defer dir.Close()
	file, err := disk.OpenListing(dir)
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

func (h handle) openFile(name string) (*DirFile, error) {
	fd, err := h.openat(name, fileFlags)
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &DirFile{content{fd, stat.Size}, modeType(uint32(stat.Mode)), time.Unix(stat.Mtim.Unix())}, nil
}

// A content is a bare descriptor: an os.File costs two system calls and a
// finalizer more, which is a third of what a search pays for a small file.
type content struct {
	fd   int
	left int64 // bytes until the size that the file had when it was opened
}

// Read takes the size of the file for its end where a read stops exactly there;
// one that grows meanwhile was searched as it was.
func (c *content) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(c.fd, p)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		if c.left -= int64(n); c.left == 0 {
			return n, io.EOF
		}
		return n, nil
	}
}

// Close releases the file.
func (c *content) Close() error {
	fd := c.fd
	if c.fd = -1; fd < 0 {
		return os.ErrClosed
	}
	return unix.Close(fd)
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

func modeType(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	}
	return fs.ModeDevice
}
