package files

import (
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// noLinks: below the root, and no link on the way. The kernel answers in one
// call what os.Root answers in one per directory; whatever it refuses takes the
// long way. A kernel or container without openat2 refuses everything.
const noLinks = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS

// lookup returns the type of rel if no link is on the way to it; a link at the
// end is looked at itself.
func (st *state) lookup(rel string) (fs.FileMode, error) {
	fd, err := st.openat2(rel, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return 0, err
	}
	return modeType(stat.Mode), nil
}

// openPlain opens a regular file that no link leads to; nil when it is not one.
func (st *state) openPlain(rel, abs string) *os.File {
	fd, ok := st.plainFD(rel)
	if !ok {
		return nil
	}
	return os.NewFile(uintptr(fd), abs)
}

// readPlain reads such a file whole, without the price of an os.File. Whatever
// is unusual about it (its size too) is left to the long way.
func (st *state) readPlain(rel string, limit int64) ([]byte, bool) {
	fd, ok := st.plainFD(rel)
	if !ok {
		return nil, false
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || modeType(stat.Mode) != 0 || stat.Size > limit || stat.Size == 0 {
		return nil, false
	}
	data := make([]byte, stat.Size+1) // one more, so that growth shows
	for n := 0; n <= int(stat.Size); {
		m, err := unix.Read(fd, data[n:])
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return nil, false
		case m == 0 || n+m == int(stat.Size):
			return data[:n+m], true
		}
		n += max(m, 0)
	}
	return nil, false
}

// plainFD opens a regular file that no link leads to. It looks first: merely
// opening a FIFO would wake the process that waits on it.
func (st *state) plainFD(rel string) (int, bool) {
	var stat unix.Stat_t
	err := unix.Fstatat(st.fd, rel, &stat, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil || modeType(stat.Mode) != 0 {
		return -1, false
	}
	fd, err := st.openat2(rel, unix.O_RDONLY|unix.O_NONBLOCK)
	return fd, err == nil
}

// openTries is how often a name is looked up again while something on its way is
// renamed. The kernel says the same of a file that another program has a lease on,
// for as long as that lasts.
const openTries = 64

func (st *state) openat2(rel string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: noLinks}
	for tries := 0; ; {
		fd, err := unix.Openat2(st.fd, rel, &how)
		runtime.KeepAlive(st)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN && tries < openTries:
			tries++
		default:
			return fd, err
		}
	}
}
