//go:build amd64 || arm64

package broker

import (
	"os"
	"syscall"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// The ioctls of a listener that package unix does not name.
const (
	ioctlValid    = 0x40082102 // SECCOMP_IOCTL_NOTIF_ID_VALID
	ioctlAddFD    = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD
	ioctlSetFlags = 0x40082104 // SECCOMP_IOCTL_NOTIF_SET_FLAGS
)

// A notification is struct seccomp_notif.
type notification struct {
	id    uint64
	tid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// A response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// An Answer is what a system call returns to the command: a value, an error, or
// that the kernel shall go on and execute it.
type Answer struct {
	val int64
	err unix.Errno
	Run bool
}

// Fail is the answer that a call has failed.
func Fail(e unix.Errno) Answer { return Answer{err: e} }

// failed is the answer for the result of a call made on the command's behalf.
func failed(err error) Answer { return Fail(kernel.AsErrno(err)) }

// A Broker answers the system calls of one domain that the filter passes on.
type Broker struct {
	session *Session
	watcher Watcher // nil where signals are not scoped
	file    *os.File
	conn    syscall.RawConn
	size    uintptr // of the kernel's struct seccomp_notif
	slots   chan struct{}
	ledger  hints.Ledger
	kept    keptSockets
}

// maxQuestions bounds how many questions of one domain are at hand. Few of them
// are worked on at once: see Seats.
const maxQuestions = 128

// New makes a broker for what a filter's listener tells, which it takes over. The watcher
// is nil where signals are not scoped.
func New(s *Session, listener int, w Watcher) *Broker {
	_ = unix.SetNonblock(listener, true)
	// Since 6.6: hand the processor straight to the other side.
	_ = unix.IoctlSetInt(listener, ioctlSetFlags, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	b := &Broker{session: s, watcher: w, file: os.NewFile(uintptr(listener), "seccomp"), size: notificationSize(),
		slots: make(chan struct{}, maxQuestions)}
	b.conn, _ = b.file.SyscallConn() // fails for closed files only
	return b
}

// notificationSize asks how much the kernel writes for a notification.
func notificationSize() uintptr {
	var sizes struct{ notif, resp, data uint16 }
	_, _, _ = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes)))
	return max(uintptr(sizes.notif), unsafe.Sizeof(notification{}))
}

// Serve answers until no process is left that could ask.
func (b *Broker) Serve() {
	defer b.file.Close()
	defer b.kept.close()
	if ls := b.session.Datagrams; ls != nil {
		defer ls.Sweep()
	}
	buf := make([]uint64, (b.size+7)/8)
	for {
		n, ok := b.receive(buf)
		if !ok {
			break
		}
		b.slots <- struct{}{}
		go func() {
			q := &Question{notification: n, broker: b}
			q.sit()
			b.respond(q)
			q.leave()
			<-b.slots
		}()
	}
	for range maxQuestions { // those at work still need the listener
		b.slots <- struct{}{}
	}
}

// receive waits for the next question; false means that there will be none.
func (b *Broker) receive(buf []uint64) (n notification, ok bool) {
	err := b.conn.Read(func(fd uintptr) bool {
		for {
			clear(buf)
			ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if _, err := unix.Poll(ready, 0); err == unix.EINTR {
				continue
			}
			if ready[0].Revents&unix.POLLIN == 0 {
				return ready[0].Revents != 0 // hung up, or wait for more
			}
			_, _, e := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&buf[0])))
			if e == 0 {
				n, ok = *(*notification)(unsafe.Pointer(&buf[0])), true
				return true
			}
			if e != unix.ENOENT && e != unix.ENOMEM && e != unix.EINTR {
				return true // nothing will ever be heard: who waits is told ENOSYS when this closes
			}
			// ENOENT: the asker died. ENOMEM passes. Look again.
		}
	})
	return n, ok && err == nil
}

func (b *Broker) respond(q *Question) {
	a := q.decide()
	r := response{id: q.id, val: a.val, err: -int32(a.err)}
	if a.Run {
		r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	}
	// An error means that the asker is gone.
	_ = b.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// control makes an ioctl on the listener.
func (b *Broker) control(cmd uintptr, arg unsafe.Pointer) unix.Errno {
	_, e := b.controlValue(cmd, arg)
	return e
}

// controlValue makes an ioctl that returns a value.
func (b *Broker) controlValue(cmd uintptr, arg unsafe.Pointer) (val int, e unix.Errno) {
	err := b.conn.Control(func(fd uintptr) {
		var r uintptr
		r, _, e = unix.Syscall(unix.SYS_IOCTL, fd, cmd, uintptr(arg))
		val = int(r)
	})
	if err != nil {
		return 0, unix.EBADF
	}
	return val, e
}

// Refusals are what was refused so far, most frequent first.
func (b *Broker) Refusals() []hints.Refusal { return b.ledger.List() }
