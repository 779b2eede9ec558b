//go:build amd64 || arm64

package broker

import (
	"net/netip"
	"slices"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/listeners"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

func (q *Question) tryConnect() Answer {
	if l := q.lookupOf(q.Arg(0)); l != nil {
		return q.connectLookup(l)
	}
	raw, family, e := q.address()
	if e != 0 {
		return Fail(e)
	}
	sock, release, e := q.socketOf(q.Arg(0))
	if e != 0 {
		return Fail(e)
	}
	var a Answer
	defer func() { release(a.err == 0 || a.err == unix.EINPROGRESS) }()
	c := q.broker.session
	switch domain := kernel.DomainOf(sock); {
	case domain == unix.AF_UNIX && family == unix.AF_UNIX:
		a = q.connectUnix(sock, raw)
	case domain == unix.AF_NETLINK:
		a = q.connectNetlink(sock, raw)
	case c.Policy.Network && domain != unix.AF_UNIX:
		a = q.connectAnywhere(sock, raw)
	case c.gate != nil && domain == unix.AF_UNIX:
		a = Fail(unix.EAFNOSUPPORT)
	case c.gate != nil && family != unix.AF_UNSPEC:
		a = q.connectOutward(sock, raw)
	case family == unix.AF_INET || family == unix.AF_INET6:
		a = q.connectLoopback(sock, raw)
	default:
		a = Fail(unix.EAFNOSUPPORT)
	}
	return a
}

// connectNetlink connects to the kernel. Our own privileges would also reach the
// netlink sockets of other programs.
func (q *Question) connectNetlink(sock int, raw []byte) Answer {
	const port, end = 4, unix.SizeofSockaddrNetlink // of nl_pid and nl_groups, which are 0 for the kernel
	if slices.ContainsFunc(raw[min(port, len(raw)):min(end, len(raw))], func(b byte) bool { return b != 0 }) {
		return q.refuse(unix.EPERM, "connect a netlink socket to another program", "")
	}
	return failed(kernel.ConnectOnce(sock, raw))
}

// connectLoopback connects to a server that the session itself runs.
func (q *Question) connectLoopback(sock int, raw []byte) Answer {
	to, ok := kernel.ParseInet(raw)
	if !ok {
		return Fail(unix.EINVAL)
	}
	ip := to.Addr().Unmap()
	if !ip.IsLoopback() && !ip.IsUnspecified() {
		return q.refuse(unix.ENETUNREACH, "connect to "+netip.AddrPortFrom(ip, to.Port()).String(), hints.PermitNetworkFlag)
	}
	at, ours, others := q.broker.session.ports.Find(to.Port(), ip, kernel.DomainOf(sock))
	if others {
		permit := hints.PermitNetworkFlag
		if q.broker.session.gate != nil {
			permit = hints.PermitElsewhere
		}
		return q.refuse(unix.EACCES, "connect to "+netip.AddrPortFrom(ip, to.Port()).String()+hints.OutsideListener, permit)
	}
	if !ours {
		return Fail(unix.ECONNREFUSED)
	}
	if steered(sock) {
		return q.refuse(unix.EACCES, "connect by a socket that does not send to the address it is given", q.permitNetwork())
	}
	return q.connectHeld(sock, netip.AddrPortFrom(at, to.Port()))
}

// connectAnywhere connects where the network is open: anywhere but to the server
// itself, on which a command could open a session that outlives its own.
func (q *Question) connectAnywhere(sock int, raw []byte) Answer {
	if listeners.OwnsAddress(raw) {
		to, _ := kernel.ParseInet(raw)
		return q.refuse(unix.EACCES, "connect to "+to.String()+", where the server that runs the commands listens", "")
	}
	return failed(q.rawConnect(sock, raw))
}

// brief is how long a connect may block, in which it holds a thread of ours.
var brief = unix.NsecToTimeval(int64(time.Millisecond))

// WaitingConnects bounds the connects of one session that wait for the other side,
// each of which holds a descriptor.
const WaitingConnects = 32

// rawConnect connects for as long as the asker waits, and no longer than its
// socket says. It asks again and again: between the questions it holds no thread.
// One connect never waits long, whatever the socket says: the asker can change that.
func (q *Question) rawConnect(sock int, raw []byte) error {
	flags, err := unix.FcntlInt(uintptr(sock), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	limit, err := q.connectBriefly(sock, raw)
	if !unfinished(err) || flags&unix.O_NONBLOCK != 0 {
		return err
	}
	if !q.waits {
		return errNoPlace
	}
	for began := time.Now(); unfinished(err); _, err = q.connectBriefly(sock, raw) {
		waited := time.Since(began)
		if limit > 0 && waited > limit {
			return err
		}
		if e := q.interruption(); e != 0 {
			return e
		}
		if q.still != nil && !q.still() {
			return unix.ECONNREFUSED
		}
		q.rest(func() { time.Sleep(min(max(waited/4, time.Millisecond), 200*time.Millisecond)) })
	}
	return err
}

// errNoPlace is the error of a connect that has to wait and has no place for that.
const errNoPlace = unix.Errno(0xfff)

// connect connects at once, or else as soon as there is a place to wait in. Until
// then it holds no descriptor, and then everything is judged anew.
func (q *Question) connect() Answer {
	a := q.tryConnect()
	if a.err != errNoPlace {
		return a
	}
	c := q.broker.session
	for tick := time.NewTicker(200 * time.Millisecond); !q.waits; {
		q.rest(func() {
			select {
			case c.Waits <- struct{}{}:
				q.waits = true
			case <-tick.C:
			}
		})
		if e := q.interruption(); !q.waits && e != 0 {
			return Fail(e)
		}
	}
	defer func() { <-c.Waits }()
	return q.tryConnect()
}

// unfinished is the error of a connect whose time was over.
func unfinished(err error) bool {
	return err == unix.EINPROGRESS || err == unix.EAGAIN || err == unix.EALREADY
}

// connectBriefly connects with a time limit of ours in the place of the asker's,
// which it returns, 0 for none.
func (q *Question) connectBriefly(sock int, raw []byte) (limit time.Duration, err error) {
	defer q.broker.session.Sockets.lock(sock)()
	old, err := unix.GetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil {
		return 0, err
	}
	_ = unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &brief) // fails on no socket
	err = kernel.ConnectOnce(sock, raw)
	_ = unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, old)
	return time.Duration(old.Nano()), err
}
