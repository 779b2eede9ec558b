//go:build amd64 || arm64

package broker

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/listeners"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
)

// A TCP connect to a server of the session is made while the broker holds the
// listening socket too: as long as it does, nobody else can listen at that address.
// What the server has not answered when the session gives it up is undone, or it
// would reach whoever listens there next.

// lookAgain is how long a wait is before another look.
const lookAgain = 20 * time.Millisecond

// connectHeld connects to the server of the session at an address.
func (q *Question) connectHeld(sock int, at netip.AddrPort) Answer {
	c := q.broker.session
	l, ok := c.ports.Hold(at, c.Kernel.GetFD)
	if !ok {
		return Fail(unix.ECONNREFUSED)
	}
	if l.IsHeld() {
		q.still = l.Owned
	} else { // nothing keeps others from the port: no connect outlasts a moment
		q.still = func() bool {
			kernel.Disconnect(sock)
			_, ours, _ := c.ports.Find(at.Port(), at.Addr(), kernel.DomainOf(sock))
			return ours
		}
	}
	err := q.rawConnect(sock, kernel.InetAddress(kernel.DomainOf(sock), at))
	if l.IsHeld() && unfinished(err) && listeners.TCPState(sock) == listeners.StateSynSent && l.Owned() {
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
	if l.IsHeld() {
		defer l.Release()
	}
	if listeners.TCPState(sock) == listeners.StateSynSent {
		kernel.Disconnect(sock)
		if err == unix.EINPROGRESS {
			err = unix.ECONNREFUSED
		}
	}
	return q.onlyOurs(sock, at, err)
}

// onlyOurs undoes a connect to an address where others have come to listen too.
func (q *Question) onlyOurs(sock int, at netip.AddrPort, err error) Answer {
	if _, _, others := q.broker.session.ports.Find(at.Port(), at.Addr(), kernel.DomainOf(sock)); others {
		kernel.Disconnect(sock)
		return Fail(unix.ECONNREFUSED)
	}
	return failed(err)
}

// attend looks after a connect that a command does not wait for, until it is
// answered, or the session gives up the server.
func (c *Session) attend(sock int, l *listeners.Held, at netip.AddrPort) {
	defer func() { <-c.pending }()
	defer l.Release()
	defer unix.Close(sock)
	others := func() bool {
		_, _, others := c.ports.Find(at.Port(), at.Addr(), kernel.DomainOf(sock))
		return others
	}
	for ; listeners.TCPState(sock) == listeners.StateSynSent; time.Sleep(lookAgain) {
		if !l.Owned() || others() {
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
