package files

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A hostTree reads the machine by names in which no part may be a link; only the
// last one may be, where the link itself is what is asked for.
type hostTree struct{ top string }

func newHostTree(top string) fs.ReadLinkFS { return hostTree{top} }

func (t hostTree) Open(name string) (fs.File, error) {
	// Without O_NONBLOCK a FIFO put in the place of a file would never open.
	return t.open("open", name, unix.O_RDONLY|unix.O_NONBLOCK)
}

func (t hostTree) Lstat(name string) (fs.FileInfo, error) {
	file, err := t.open("lstat", name, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.Stat()
}

// Stat is Lstat: no link is followed.
func (t hostTree) Stat(name string) (fs.FileInfo, error) { return t.Lstat(name) }

func (t hostTree) ReadLink(name string) (string, error) {
	file, err := t.open("readlink", name, unix.O_PATH)
	if err != nil {
		return "", err
	}
	defer file.Close()
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(file.Fd()), "", target)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(target[:n]), nil
}

// openStraight opens what no link leads to; nil where the kernel cannot.
func (st *state) openStraight(rel string) (fs.File, error) {
	fd, err := st.openat2(rel, unix.O_RDONLY|unix.O_NONBLOCK)
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), rel), nil
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return nil, nil
	}
	return nil, &fs.PathError{Op: "open", Path: rel, Err: err}
}

func (t hostTree) open(op, name string, flags int) (*os.File, error) {
	if !fs.ValidPath(name) || strings.Contains(name, "\x00") {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	flags |= unix.O_NOFOLLOW | unix.O_CLOEXEC
	how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := retry(func() (int, error) { return unix.Openat2(unix.AT_FDCWD, t.top+name, &how) })
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // an old kernel, or a container's filter
		fd, err = t.walk(name, flags)
	}
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), t.top+name), nil
}

// walk goes from directory to directory, where the kernel cannot do it in one step.
func (t hostTree) walk(name string, flags int) (fd int, err error) {
	at, err := unix.Open(t.top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		how := unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		if i == len(parts)-1 {
			how = flags
		}
		next, err := retry(func() (int, error) { return unix.Openat(at, part, how, 0) })
		_ = unix.Close(at)
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

func retry(open func() (int, error)) (int, error) {
	for {
		if fd, err := open(); err != unix.EINTR {
			return fd, err
		}
	}
}
