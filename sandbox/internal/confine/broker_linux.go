//go:build amd64 || arm64

package confine

import (
	"os"
	"syscall"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
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

// An answer is what a system call returns to the command: a value, an error, or
// that the kernel shall go on and execute it.
type answer struct {
	val int64
	err unix.Errno
	run bool
}

func fail(e unix.Errno) answer { return answer{err: e} }

// failed is the answer for the result of a call made on the command's behalf.
func failed(err error) answer {
	if e, ok := err.(unix.Errno); ok {
		return answer{err: e}
	}
	if err != nil {
		return answer{err: unix.EIO}
	}
	return answer{}
}

// A broker answers the system calls of one domain that the filter passes on.
type broker struct {
	session *session
	watcher domainWatcher // nil where signals are not scoped
	file    *os.File
	conn    syscall.RawConn
	size    uintptr // of the kernel's struct seccomp_notif
	slots   chan struct{}
	ledger  hints.Ledger
	kept    keptSockets
}

// maxQuestions bounds how many questions of one domain are at hand. Few of them
// are worked on at once: see seats.
const maxQuestions = 128

// newBroker takes the listener over.
func newBroker(s *session, listener int, w domainWatcher) *broker {
	_ = unix.SetNonblock(listener, true)
	// Since 6.6: hand the processor straight to the other side.
	_ = unix.IoctlSetInt(listener, ioctlSetFlags, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	b := &broker{session: s, watcher: w, file: os.NewFile(uintptr(listener), "seccomp"), size: notificationSize(),
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

// serve answers until no process is left that could ask.
func (b *broker) serve() {
	defer b.file.Close()
	defer b.kept.close()
	if ls := b.session.lookups; ls != nil {
		defer ls.sweep()
	}
	buf := make([]uint64, (b.size+7)/8)
	for {
		n, ok := b.receive(buf)
		if !ok {
			break
		}
		b.slots <- struct{}{}
		go func() {
			q := &question{notification: n, broker: b}
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
func (b *broker) receive(buf []uint64) (n notification, ok bool) {
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
			// ENOENT: the asker died. ENOMEM passes. Look again.
		}
	})
	return n, ok && err == nil
}

func (b *broker) respond(q *question) {
	a := q.decide()
	r := response{id: q.id, val: a.val, err: -int32(a.err)}
	if a.run {
		r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	}
	// An error means that the asker is gone.
	_ = b.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// control makes an ioctl on the listener.
func (b *broker) control(cmd uintptr, arg unsafe.Pointer) unix.Errno {
	_, e := b.controlValue(cmd, arg)
	return e
}

// controlValue makes an ioctl that returns a value.
func (b *broker) controlValue(cmd uintptr, arg unsafe.Pointer) (val int, e unix.Errno) {
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

func (b *broker) refusals() []hints.Refusal { return b.ledger.List() }
