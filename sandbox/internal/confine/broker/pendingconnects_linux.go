//go:build amd64 || arm64

package broker

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A TCP connect to a server of the session is made while the broker holds the
// listening socket too: as long as it does, nobody else can listen at that address.
// What the server has not answered when the session gives it up is undone, or it
// would reach whoever listens there next.

// The states of a TCP socket that matter here.
const (
	stateSynSent = 2
	lookAgain    = 20 * time.Millisecond
)

// A heldListener is a listening socket of the session, which we hold as well.
type heldListener struct {
	fd       int // ours; -1 where sockets of others cannot be had
	cookie   uint64
	ino      uint64
	pid, num int // a process that has it, and as what
}

// hold holds what the session listens with at an address.
func (q *Question) hold(at netip.AddrPort) (l *heldListener, ok bool) {
	c := q.broker.session
	l = &heldListener{fd: -1}
	for _, s := range listening(at.Port()) {
		if c.ports.has(at.Port(), s.cookie) && s.at.Unmap() == at.Addr() {
			l.cookie, l.ino = s.cookie, s.inode
		}
	}
	if l.cookie == 0 {
		return nil, false
	}
	if !c.Kernel.GetFD {
		return l, true
	}
	c.held.Add(1)
	if l.owned() {
		l.fd = l.take()
	}
	if l.fd < 0 {
		l.release(c)
		return nil, false
	}
	return l, true
}

// take duplicates the socket from the process that has it.
func (l *heldListener) take() int {
	pidfd, err := unix.PidfdOpen(l.pid, 0)
	if err != nil {
		return -1
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, l.num, 0)
	if err != nil {
		return -1
	}
	if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE); err != nil || cookie != l.cookie {
		unix.Close(fd)
		return -1
	}
	return fd
}

func (l *heldListener) release(c *Session) {
	if l.fd >= 0 {
		unix.Close(l.fd)
	}
	c.held.Add(-1)
}

// owned reports whether it listens still, and not for us alone.
func (l *heldListener) owned() bool {
	if l.fd >= 0 && tcpState(l.fd) != stateListen {
		return false
	}
	name := fmt.Sprintf("socket:[%d]", l.ino)
	if link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", l.pid, l.num)); err == nil && link == name {
		return true
	}
	for _, p := range proc.All() {
		fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID))
		for _, fd := range fds {
			link, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", p.PID, fd.Name()))
			if link == name && p.PID != os.Getpid() {
				l.pid = p.PID
				_, err := fmt.Sscan(fd.Name(), &l.num)
				return err == nil
			}
		}
	}
	return false
}

func tcpState(sock int) uint8 {
	info, err := unix.GetsockoptTCPInfo(sock, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0
	}
	return info.State
}

// connectHeld connects to the server of the session at an address.
func (q *Question) connectHeld(sock int, at netip.AddrPort) Answer {
	l, ok := q.hold(at)
	if !ok {
		return Fail(unix.ECONNREFUSED)
	}
	c := q.broker.session
	if l.fd >= 0 {
		q.still = l.owned
	} else { // nothing keeps others from the port: no connect outlasts a moment
		q.still = func() bool {
			kernel.Disconnect(sock)
			_, ours, _ := c.ports.find(at.Port(), at.Addr(), domainOf(sock))
			return ours
		}
	}
	err := q.rawConnect(sock, InetAddress(domainOf(sock), at))
	if l.fd >= 0 && unfinished(err) && tcpState(sock) == stateSynSent && l.owned() {
		if own, e := unix.FcntlInt(uintptr(sock), unix.F_DUPFD_CLOEXEC, 0); e == nil {
			select {
			case c.pending <- struct{}{}:
				go c.attend(own, l, at)
				return failed(err)
			default:
				unix.Close(own)
				err = unix.EAGAIN
			}
		}
	}
	if l.fd >= 0 {
		defer l.release(c)
	}
	if tcpState(sock) == stateSynSent {
		kernel.Disconnect(sock)
		if err == unix.EINPROGRESS {
			err = unix.ECONNREFUSED
		}
	}
	return q.onlyOurs(sock, at, err)
}

// onlyOurs undoes a connect to an address where others have come to listen too.
func (q *Question) onlyOurs(sock int, at netip.AddrPort, err error) Answer {
	if _, _, others := q.broker.session.ports.find(at.Port(), at.Addr(), domainOf(sock)); others {
		kernel.Disconnect(sock)
		return Fail(unix.ECONNREFUSED)
	}
	return failed(err)
}

// attend looks after a connect that a command does not wait for, until it is
// answered, or the session gives up the server.
func (c *Session) attend(sock int, l *heldListener, at netip.AddrPort) {
	defer func() { <-c.pending }()
	defer l.release(c)
	defer unix.Close(sock)
	others := func() bool {
		_, _, others := c.ports.find(at.Port(), at.Addr(), domainOf(sock))
		return others
	}
	for ; tcpState(sock) == stateSynSent; time.Sleep(lookAgain) {
		if !l.owned() || others() {
			_ = unix.Shutdown(sock, unix.SHUT_RDWR) // its error is the command's to read
			return
		}
	}
	if others() {
		_ = unix.Shutdown(sock, unix.SHUT_RDWR)
	}
}

// pendingConnects bounds how many of them a session has.
const pendingConnects = 64

// has reports whether the session listens with a socket.
func (l *listeners) has(port uint16, cookie uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byPort[port][cookie]
}
