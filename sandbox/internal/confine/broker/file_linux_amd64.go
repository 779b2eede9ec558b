package broker

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	cwd := unix.AT_FDCWD
	for nr, f := range map[int32]func(*Question) Answer{
		unix.SYS_OPEN:  func(q *Question) Answer { return q.open(q.args[0], q.Arg(1)) },
		unix.SYS_CHMOD: func(q *Question) Answer { return q.chmod(q.byPath(cwd, q.args[0], 0), q.args[1]) },
		unix.SYS_CHOWN: func(q *Question) Answer { return q.chown(q.byPath(cwd, q.args[0], 0), q.Arg(1), q.Arg(2)) },
		unix.SYS_LCHOWN: func(q *Question) Answer {
			return q.chown(q.byPath(cwd, q.args[0], unix.AT_SYMLINK_NOFOLLOW), q.Arg(1), q.Arg(2))
		},
		unix.SYS_UTIME:  func(q *Question) Answer { return q.utime(q.byPath(cwd, q.args[0], 0), readSeconds) },
		unix.SYS_UTIMES: func(q *Question) Answer { return q.utime(q.byPath(cwd, q.args[0], 0), readTimevals) },
		unix.SYS_FUTIMESAT: func(q *Question) Answer {
			if q.args[1] == 0 {
				return q.utime(q.byFD(q.Arg(0)), readTimevals)
			}
			return q.utime(q.byPath(q.Arg(0), q.args[1], 0), readTimevals)
		},
	} {
		Handlers[nr] = f
	}
}

// timesArg returns where a call keeps its times.
func (q *Question) timesArg() uint64 {
	if q.nr == unix.SYS_UTIME || q.nr == unix.SYS_UTIMES {
		return q.args[1]
	}
	return q.args[2]
}

// readSeconds reads a struct utimbuf.
func readSeconds(q *Question, from uint64) (t [2]unix.Timespec, ok bool) {
	var s [2]int64
	b := (*[unsafe.Sizeof(s)]byte)(unsafe.Pointer(&s))
	ok = q.read(from, b[:])
	return [2]unix.Timespec{{Sec: s[0]}, {Sec: s[1]}}, ok
}

func readTimevals(q *Question, from uint64) (t [2]unix.Timespec, ok bool) {
	var s [2]unix.Timeval
	b := (*[unsafe.Sizeof(s)]byte)(unsafe.Pointer(&s))
	ok = q.read(from, b[:])
	for i, v := range s {
		t[i] = unix.Timespec{Sec: v.Sec, Nsec: v.Usec * 1000}
	}
	return t, ok
}
