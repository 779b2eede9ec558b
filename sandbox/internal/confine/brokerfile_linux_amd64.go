package confine

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	cwd := unix.AT_FDCWD
	for nr, f := range map[int32]func(*question) answer{
		unix.SYS_OPEN:  func(q *question) answer { return q.open(q.args[0], q.arg(1)) },
		unix.SYS_CHMOD: func(q *question) answer { return q.chmod(q.byPath(cwd, q.args[0], 0), q.args[1]) },
		unix.SYS_CHOWN: func(q *question) answer { return q.chown(q.byPath(cwd, q.args[0], 0), q.arg(1), q.arg(2)) },
		unix.SYS_LCHOWN: func(q *question) answer {
			return q.chown(q.byPath(cwd, q.args[0], unix.AT_SYMLINK_NOFOLLOW), q.arg(1), q.arg(2))
		},
		unix.SYS_UTIME:  func(q *question) answer { return q.utime(q.byPath(cwd, q.args[0], 0), readSeconds) },
		unix.SYS_UTIMES: func(q *question) answer { return q.utime(q.byPath(cwd, q.args[0], 0), readTimevals) },
		unix.SYS_FUTIMESAT: func(q *question) answer {
			if q.args[1] == 0 {
				return q.utime(q.byFD(q.arg(0)), readTimevals)
			}
			return q.utime(q.byPath(q.arg(0), q.args[1], 0), readTimevals)
		},
	} {
		handlers[nr] = f
	}
}

// timesArg returns where a call keeps its times.
func (q *question) timesArg() uint64 {
	if q.nr == unix.SYS_UTIME || q.nr == unix.SYS_UTIMES {
		return q.args[1]
	}
	return q.args[2]
}

// readSeconds reads a struct utimbuf.
func readSeconds(q *question, from uint64) (t [2]unix.Timespec, ok bool) {
	var s [2]int64
	b := (*[unsafe.Sizeof(s)]byte)(unsafe.Pointer(&s))
	ok = q.read(from, b[:])
	return [2]unix.Timespec{{Sec: s[0]}, {Sec: s[1]}}, ok
}

func readTimevals(q *question, from uint64) (t [2]unix.Timespec, ok bool) {
	var s [2]unix.Timeval
	b := (*[unsafe.Sizeof(s)]byte)(unsafe.Pointer(&s))
	ok = q.read(from, b[:])
	for i, v := range s {
		t[i] = unix.Timespec{Sec: v.Sec, Nsec: v.Usec * 1000}
	}
	return t, ok
}
