//go:build amd64 || arm64

package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/seccomp"
	"golang.org/x/sys/unix"
)

// Changing modes, owners and times is not Landlock's. The broker opens the object
// first, asks where it is, and acts on what it opened. A confined process cannot
// bring an object from outside below a writable root, so the answer stays true.

// fileHandlers decide the calls that change what is known about a file.
var fileHandlers = map[int32]func(*Question) Answer{
	unix.SYS_INOTIFY_ADD_WATCH: (*Question).watch,

	unix.SYS_FCHMOD:    func(q *Question) Answer { return q.chmod(q.byFD(q.Arg(0)), q.args[1]) },
	unix.SYS_FCHMODAT:  func(q *Question) Answer { return q.chmod(q.byPath(q.Arg(0), q.args[1], 0), q.args[2]) },
	unix.SYS_FCHMODAT2: func(q *Question) Answer { return q.chmod(q.byPath(q.Arg(0), q.args[1], q.Arg(3)), q.args[2]) },
	unix.SYS_FCHOWN:    func(q *Question) Answer { return q.chown(q.byFD(q.Arg(0)), q.Arg(1), q.Arg(2)) },
	unix.SYS_FCHOWNAT: func(q *Question) Answer {
		return q.chown(q.byPath(q.Arg(0), q.args[1], q.Arg(4)), q.Arg(2), q.Arg(3))
	},
	unix.SYS_UTIMENSAT: func(q *Question) Answer {
		if q.args[1] == 0 { // futimens
			return q.utime(q.byFD(q.Arg(0)), readTimespecs)
		}
		return q.utime(q.byPath(q.Arg(0), q.args[1], q.Arg(3)), readTimespecs)
	},
}

// watch has the asker told of what happens in a directory that it may read. The
// kernel would ask for the same user id only. Where the asker's descriptor cannot
// be duplicated it makes the call itself, and could exchange the path meanwhile.
func (q *Question) watch() Answer {
	mask, flags := uint32(q.args[2]), 0
	if mask&unix.IN_DONT_FOLLOW != 0 {
		flags = unix.AT_SYMLINK_NOFOLLOW
	}
	o := q.byPath(unix.AT_FDCWD, q.args[1], flags)
	if o.e != 0 {
		return Fail(o.e)
	}
	defer unix.Close(o.fd)
	c := q.broker.session
	if !c.Policy.Allows(o.path, false) {
		if c.leadsToWrites(o.path) { // file watchers try every parent and do without: to permit that would open all
			return Fail(unix.EACCES)
		}
		return q.refuse(unix.EACCES, "watch "+o.path, "--allow-read "+o.path)
	}
	if !c.Kernel.GetFD {
		return Answer{Run: true}
	}
	queue, e := q.duplicate(q.Arg(0))
	if e != 0 {
		return Fail(e)
	}
	defer unix.Close(queue)
	number, err := unix.InotifyAddWatch(queue, kernel.FdPath(o.fd), mask&^unix.IN_DONT_FOLLOW)
	if err != nil {
		return failed(err)
	}
	return Answer{val: int64(number)}
}

// An object is what a call names: an O_PATH descriptor of ours, or an error.
type object struct {
	fd   int
	path string // where it is
	e    unix.Errno
}

// byFD opens what a descriptor of the asker refers to.
func (q *Question) byFD(fd int) object {
	return q.opened(unix.Open(q.inProc("fd/%d", fd), unix.O_PATH|unix.O_CLOEXEC, 0))
}

// byPath opens what a path means to the asker. Its root is ours, for it can
// neither change root nor make namespaces.
func (q *Question) byPath(dirfd int, from uint64, flags int) object {
	path, e := q.path(from)
	if e != 0 {
		return object{e: e}
	}
	if path == "" {
		if flags&unix.AT_EMPTY_PATH == 0 {
			return object{e: unix.ENOENT}
		}
		if dirfd == unix.AT_FDCWD {
			return q.opened(unix.Open(q.inProc("cwd"), unix.O_PATH|unix.O_CLOEXEC, 0))
		}
		return q.byFD(dirfd)
	}
	follow := flags&unix.AT_SYMLINK_NOFOLLOW == 0
	if fd, ok := q.descriptorPath(path); ok && follow {
		return q.byFD(fd)
	}
	return q.opened(q.openPath(dirfd, path, follow))
}

// openPath opens a path from the asker's directory, through ordinary links only.
func (q *Question) openPath(dirfd int, path string, follow bool) (int, error) {
	start := unix.AT_FDCWD
	if !filepath.IsAbs(path) {
		name := q.inProc("cwd")
		if dirfd != unix.AT_FDCWD {
			name = q.inProc("fd/%d", dirfd)
		}
		var err error
		if start, err = unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return -1, unix.EBADF
		}
		defer unix.Close(start)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if !follow {
		how.Flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Openat2(start, path, &how)
	if err == unix.ENOSYS {
		return openStepwise(start, path, follow)
	}
	return fd, err
}

// descriptorPath recognises the names under /proc and /dev by which a process
// means its own descriptor. Resolved by us they would mean ours.
func (q *Question) descriptorPath(path string) (fd int, ok bool) {
	path = filepath.Clean(path)
	for i, name := range []string{"/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		if path == name {
			return i, true
		}
	}
	dirs := []string{"/dev/fd/"}
	if strings.HasPrefix(path, "/proc/") {
		dirs = []string{"/proc/self/fd/", "/proc/thread-self/fd/", q.inProc("fd/"), fmt.Sprintf("/proc/%d/fd/", q.process())}
	}
	for _, dir := range dirs {
		if name, found := strings.CutPrefix(path, dir); found {
			fd, err := strconv.Atoi(name)
			return fd, err == nil
		}
	}
	return 0, false
}

// opened finds out where an opened object is.
func (q *Question) opened(fd int, err error) object {
	if err != nil {
		return object{e: failed(err).err}
	}
	path, err := os.Readlink(kernel.FdPath(fd))
	if err != nil || !q.valid() {
		unix.Close(fd)
		return object{e: unix.EACCES}
	}
	return object{fd: fd, path: path}
}

// change applies f to an object if it lies below a writable root.
func (q *Question) change(o object, verb string, f func() error) Answer {
	if o.e != 0 {
		return Fail(o.e)
	}
	defer unix.Close(o.fd)
	if o.path == q.broker.session.shared { // root's to change, for all who have files there
		return Fail(unix.EPERM)
	}
	if !q.broker.session.writable(o.path) && !q.isOwnTerminal(o) {
		if !filepath.IsAbs(o.path) { // a pipe or socket: nothing that a policy names
			return Fail(unix.EPERM)
		}
		return q.refuse(unix.EACCES, verb+" "+o.path, "--allow-write "+o.path)
	}
	return failed(f())
}

func (q *Question) chmod(o object, mode uint64) Answer {
	if o.e == 0 && !mayOwn(o) {
		unix.Close(o.fd)
		return Fail(unix.EPERM)
	}
	return q.change(o, "change the mode of", func() error {
		if mode&seccomp.SetIDBits != 0 && !kernel.IsDir(o.fd) {
			return unix.EPERM
		}
		return unix.Fchmodat(unix.AT_FDCWD, kernel.FdPath(o.fd), uint32(mode)&0o7777, 0)
	})
}

// mayOwn reports whether the user may change an object's mode. Where not even the
// kernel would permit it, no argument of the server does, and none is named.
func mayOwn(o object) bool {
	var stat unix.Stat_t
	uid := unix.Geteuid()
	return uid == 0 || unix.Fstatat(o.fd, "", &stat, unix.AT_EMPTY_PATH) != nil || int(stat.Uid) == uid
}

func (q *Question) chown(o object, uid, gid int) Answer {
	return q.change(o, "change the owner of", func() error {
		return unix.Fchownat(o.fd, "", uid, gid, unix.AT_EMPTY_PATH)
	})
}

// utime sets times that get reads from the asker's memory; none means now.
func (q *Question) utime(o object, get func(*Question, uint64) ([2]unix.Timespec, bool)) Answer {
	var times *[2]unix.Timespec
	if from := q.timesArg(); from != 0 {
		t, ok := get(q, from)
		if !ok {
			if o.e == 0 {
				unix.Close(o.fd)
			}
			return Fail(unix.EFAULT)
		}
		times = &t
	}
	return q.change(o, "change the times of", func() error {
		var empty byte
		_, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(o.fd), uintptr(unsafe.Pointer(&empty)),
			uintptr(unsafe.Pointer(times)), unix.AT_EMPTY_PATH, 0, 0)
		if e != 0 {
			return e
		}
		return nil
	})
}

func readTimespecs(q *Question, from uint64) (t [2]unix.Timespec, ok bool) {
	b := (*[unsafe.Sizeof(t)]byte)(unsafe.Pointer(&t))
	return t, q.read(from, b[:])
}

// writable reports whether a path, links resolved, lies below a writable root.
func (c *Session) writable(path string) bool { return policy.Below(path, c.writes) }

// leadsToWrites reports whether a writable root lies below a path.
func (c *Session) leadsToWrites(path string) bool {
	return slices.ContainsFunc(c.writes, func(root string) bool { return policy.Below(root, []string{path}) })
}
