//go:build amd64 || arm64

package broker

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A Question is one system call of a command that waits for the broker. What is
// read from the asker's memory is read once, and judged and used as it was read.
type Question struct {
	notification
	broker *Broker
	leave  func()      // gives its seat back
	waits  bool        // it has a place among the connects that wait
	still  func() bool // whether a connect that waits has to go on, nil for yes

	admitted netip.AddrPort // where the gate has let it connect to
}

// sit waits for a seat of the session.
func (q *Question) sit() { q.leave = q.broker.session.Seats.Take() }

// rest does what blocks no thread, without the seat.
func (q *Question) rest(f func()) {
	q.leave()
	defer q.sit()
	f()
}

// Handlers say who decides which system call.
var Handlers = func() map[int32]func(*Question) Answer {
	h := map[int32]func(*Question) Answer{
		unix.SYS_SOCKET: (*Question).socket, unix.SYS_BIND: (*Question).bind,
		unix.SYS_LISTEN: (*Question).listen, unix.SYS_CONNECT: (*Question).connect,
		unix.SYS_SENDTO: (*Question).sendTo, unix.SYS_RECVFROM: (*Question).receiveFrom, unix.SYS_RECVMSG: (*Question).receiveMessage,
		unix.SYS_SENDMSG: (*Question).sendMessage, unix.SYS_SENDMMSG: (*Question).sendMessages, unix.SYS_RECVMMSG: (*Question).receiveMessages, unix.SYS_SOCKETPAIR: (*Question).pair,
		unix.SYS_GETSOCKNAME: (*Question).ownName, unix.SYS_GETPEERNAME: (*Question).peerName, unix.SYS_SETSOCKOPT: (*Question).setOption,
		unix.SYS_OPENAT: func(q *Question) Answer { return q.open(q.args[1], q.Arg(2)) },
		unix.SYS_KILL:   (*Question).kill, unix.SYS_PIDFD_SEND_SIGNAL: (*Question).pidfdSignal,
		unix.SYS_TKILL: (*Question).taskSignal, unix.SYS_TGKILL: (*Question).taskSignal,
		unix.SYS_RT_SIGQUEUEINFO: (*Question).taskSignal, unix.SYS_RT_TGSIGQUEUEINFO: (*Question).taskSignal,
		unix.SYS_PRLIMIT64: (*Question).limit, unix.SYS_SCHED_SETAFFINITY: (*Question).schedule,
		unix.SYS_SCHED_SETPARAM: (*Question).schedule, unix.SYS_SCHED_SETSCHEDULER: (*Question).schedule,
		unix.SYS_SCHED_SETATTR: (*Question).schedule,
		unix.SYS_SETPRIORITY:   (*Question).priority, unix.SYS_IOPRIO_SET: (*Question).priority,
		unix.SYS_CLONE: refuses("create namespaces"), unix.SYS_UNSHARE: refuses("create namespaces"),
		unix.SYS_MQ_OPEN: (*Question).queue, unix.SYS_MQ_UNLINK: (*Question).queue,
		unix.SYS_SETNS: refuses("enter namespaces"), unix.SYS_CHROOT: refuses("chroot"),
	}
	maps.Copy(h, fileHandlers)
	maps.Copy(h, ipcHandlers())
	return h
}()

// decide finds the answer. What no handler names is a call that only the
// filter's list of refusals sends here: mounting and the like.
func (q *Question) decide() Answer {
	if f := Handlers[q.nr]; f != nil {
		return f(q)
	}
	return q.refuse(unix.EPERM, "mount or administer the system", "")
}

func refuses(what string) func(*Question) Answer {
	return func(q *Question) Answer { return q.refuse(unix.EPERM, what, "") }
}

// queue refuses POSIX message queues: see ipcRules.
func (q *Question) queue() Answer {
	return q.refuse(unix.EPERM, "use POSIX message queues", hints.PermitNamespacesFlag)
}

// refuse puts a refusal on record and answers with e.
func (q *Question) refuse(e unix.Errno, what, permit string) Answer {
	q.broker.ledger.Add(hints.Refusal{Command: proc.Name(int(q.tid)), What: what, Permit: permit})
	return Fail(e)
}

// valid reports whether the asker still waits. Only then was what we found under
// its task id its own.
func (q *Question) valid() bool {
	id := q.id
	return q.broker.control(ioctlValid, unsafe.Pointer(&id)) == 0
}

// Arg returns an argument that the kernel takes as int.
func (q *Question) Arg(i int) int { return int(int32(q.args[i])) }

// read copies the asker's memory; false when it cannot be had.
func (q *Question) read(from uint64, to []byte) bool {
	return from != 0 && kernel.ReadMemory(int(q.tid), from, to) == len(to) && q.valid()
}

// path reads a path, which ends in NUL and within the system's limit. It is read
// to the ends of pages, because memory may end there.
func (q *Question) path(from uint64) (string, unix.Errno) {
	const page = 4096
	var path []byte
	for len(path) < unix.PathMax && from != 0 {
		chunk := make([]byte, page-from%page)
		n := kernel.ReadMemory(int(q.tid), from, chunk)
		if n == 0 {
			break
		}
		if end := bytes.IndexByte(chunk[:n], 0); end >= 0 {
			if !q.valid() {
				break
			}
			if path = append(path, chunk[:end]...); len(path) >= unix.PathMax {
				return "", unix.ENAMETOOLONG
			}
			return string(path), 0
		}
		path, from = append(path, chunk[:n]...), from+uint64(n)
	}
	if len(path) >= unix.PathMax {
		return "", unix.ENAMETOOLONG
	}
	return "", unix.EFAULT
}

// inProc names a file below the asker's directory in /proc.
func (q *Question) inProc(format string, args ...any) string {
	return fmt.Sprintf("/proc/%d/", q.tid) + fmt.Sprintf(format, args...)
}

// socketOf duplicates the socket behind a descriptor of the asker. The caller
// releases it, and says whether it has its final address.
func (q *Question) socketOf(fd int) (sock int, release func(settled bool), e unix.Errno) {
	if !q.broker.session.Kernel.GetFD {
		return q.broker.kept.find(q, fd)
	}
	if sock, e = q.duplicate(fd); e != 0 {
		return -1, nil, e
	}
	if _, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		unix.Close(sock)
		return -1, nil, unix.ENOTSOCK
	}
	return sock, func(bool) { unix.Close(sock) }, 0
}

// duplicate copies a descriptor of the asker.
func (q *Question) duplicate(fd int) (own int, e unix.Errno) {
	pidfd, err := q.pidfd()
	if err != nil {
		return -1, unix.ESRCH
	}
	defer unix.Close(pidfd)
	if !q.valid() {
		return -1, unix.ESRCH
	}
	own, err = unix.PidfdGetfd(pidfd, fd, 0)
	if err == unix.EBADF {
		return -1, unix.EBADF
	}
	if err != nil {
		return -1, unix.EACCES
	}
	return own, 0
}

// pidfd opens the asker's process. Most askers are its first thread.
func (q *Question) pidfd() (int, error) {
	if fd, err := unix.PidfdOpen(int(q.tid), 0); err == nil {
		return fd, nil
	}
	return unix.PidfdOpen(q.process(), 0)
}

// process returns the id of the asker's process, of which it may be any thread.
func (q *Question) process() int {
	tgid, err := strconv.Atoi(proc.StatusField(int(q.tid), "Tgid"))
	if err != nil {
		return int(q.tid)
	}
	return tgid
}
