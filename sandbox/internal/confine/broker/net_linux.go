//go:build amd64 || arm64

package broker

import (
	"encoding/binary"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/seccomp"
	"golang.org/x/sys/unix"
)

// socket comes here when the kind of socket is refused, and for every socket
// where the broker cannot duplicate a command's and therefore makes it.
func (q *Question) socket() Answer {
	domain, kind, proto := q.Arg(0), q.Arg(1)&seccomp.TypeMask, q.Arg(2)
	network := q.broker.session.Policy.Network
	if kind == unix.SOCK_DGRAM && !network &&
		(domain == unix.AF_INET || domain == unix.AF_INET6) && (proto == 0 || proto == unix.IPPROTO_UDP) {
		return q.openLookup(domain, q.Arg(1))
	}
	if kind == unix.SOCK_DGRAM && domain == unix.AF_UNIX && !network && (proto == 0 || proto == unix.AF_UNIX) {
		return q.openLookup(domain, q.Arg(1))
	}
	if !admitsSocket(domain, kind, proto, network) {
		permit := q.permitNetwork()
		if network || kind == unix.SOCK_RAW || domain != unix.AF_INET && domain != unix.AF_INET6 {
			permit = ""
		}
		if domain == unix.AF_UNIX {
			permit = hints.PermitNamespacesFlag
		}
		return q.refuse(unix.EACCES, "open "+socketName(domain, kind, proto), permit)
	}
	return q.broker.kept.make(q, domain, q.Arg(1), proto)
}

// admitsSocket says of the broker's own sockets what the filter says of others.
func admitsSocket(domain, kind, proto int, network bool) bool {
	switch domain {
	case unix.AF_UNIX:
		return kind == unix.SOCK_STREAM || kind == unix.SOCK_SEQPACKET
	case unix.AF_INET, unix.AF_INET6:
		if kind == unix.SOCK_STREAM {
			return proto == 0 || proto == unix.IPPROTO_TCP
		}
		return network && kind == unix.SOCK_DGRAM &&
			(proto == 0 || proto == unix.IPPROTO_UDP || proto == unix.IPPROTO_ICMP || proto == unix.IPPROTO_ICMPV6)
	}
	return false
}

func socketName(domain, kind, proto int) string {
	switch {
	case domain == unix.AF_UNIX:
		return "a Unix datagram socket"
	case domain != unix.AF_INET && domain != unix.AF_INET6:
		return "a socket of address family " + strconv.Itoa(domain)
	case kind == unix.SOCK_DGRAM:
		return "a UDP socket (name lookups need one)"
	case proto == seccomp.ProtoMPTCP:
		return "an MPTCP socket"
	}
	return "a raw network socket"
}

// address reads a socket address; its family comes first.
func (q *Question) address() (raw []byte, family int, e unix.Errno) {
	return q.addressAt(q.args[1], q.Arg(2))
}

func (q *Question) addressAt(at uint64, size int) (raw []byte, family int, e unix.Errno) {
	if size < 2 || size > unix.SizeofSockaddrAny+16 {
		return nil, 0, unix.EINVAL
	}
	raw = make([]byte, size)
	if !q.read(at, raw) {
		return nil, 0, unix.EFAULT
	}
	return raw, int(binary.NativeEndian.Uint16(raw)), 0
}

func (q *Question) bind() Answer {
	raw, family, e := q.address()
	if e != 0 {
		return Fail(e)
	}
	if family == unix.AF_NETLINK {
		// The asker's own privileges count, not ours. A swap for another socket gains
		// what it does in bindUnix: nothing.
		return Answer{Run: true}
	}
	if l := q.lookupOf(q.Arg(0)); l != nil {
		return q.bindLookup(l)
	}
	sock, release, e := q.socketOf(q.Arg(0))
	if e != 0 {
		return Fail(e)
	}
	defer release(false)
	switch domain := kernel.DomainOf(sock); {
	case domain == unix.AF_UNIX:
		return q.bindUnix(sock, raw)
	case q.broker.session.Policy.Network:
		return failed(q.bindAgain(sock, raw))
	case family != unix.AF_INET && family != unix.AF_INET6:
		return Fail(unix.EAFNOSUPPORT)
	}
	return q.bindLoopback(sock, raw)
}

// permitNetwork is the flag that permits what concerns the network. Where rules say
// what is reached none does: the wider wall is no cure.
func (q *Question) permitNetwork() string {
	if q.broker.session.gate != nil {
		return ""
	}
	return hints.PermitNetworkFlag
}

// bindLoopback binds to loopback addresses; all addresses means all of those.
func (q *Question) bindLoopback(sock int, raw []byte) Answer {
	to, ok := kernel.ParseInet(raw)
	if !ok {
		return Fail(unix.EINVAL)
	}
	if to.Port() != 0 && int(to.Port()) < unprivilegedPort() {
		return Fail(unix.EACCES)
	}
	ip := to.Addr()
	if ip.Unmap().IsUnspecified() {
		if to.Port() == 0 && q.broker.session.gate != nil {
			return q.bindNowhere(sock, to)
		}
		ip = loopbackFor(sock)
	}
	if !ip.Unmap().IsLoopback() {
		return q.refuse(unix.EACCES, "listen on "+to.String(), q.permitNetwork())
	}
	if q.broker.session.ports.IsTaken(to.Port()) {
		return q.refuseTaken(to.Port())
	}
	defer q.broker.session.Sockets.lock(sock)()
	err := q.bindAgain(sock, kernel.InetAddress(kernel.DomainOf(sock), netip.AddrPortFrom(ip, to.Port())))
	if err == nil {
		err = markBound(sock)
	}
	return failed(err)
}

// bindNowhere leaves a socket as it is where neither an address nor a port is asked for:
// it may be one that connects outward, which from loopback it could not. It is bound
// when it listens, or when somebody asks for its port.
func (q *Question) bindNowhere(sock int, to netip.AddrPort) Answer {
	if to.Addr().Is4() != (kernel.DomainOf(sock) == unix.AF_INET) {
		return Fail(unix.EINVAL)
	}
	defer q.broker.session.Sockets.lock(sock)()
	if at, ok := kernel.LocalAddress(sock); !ok || at.Port() != 0 || isBound(sock) {
		return Fail(unix.EINVAL)
	}
	q.broker.session.nowhere.Store(true)
	return failed(markBound(sock))
}

// bindAtLast gives a socket that bindNowhere left as it was a port of loopback.
func (q *Question) bindAtLast() {
	c := q.broker.session
	if !c.nowhere.Load() {
		return
	}
	sock, release, e := q.socketOf(q.Arg(0))
	if e != 0 {
		return
	}
	defer release(false)
	if domain := kernel.DomainOf(sock); domain != unix.AF_INET && domain != unix.AF_INET6 {
		return
	}
	defer c.Sockets.lock(sock)()
	if at, ok := kernel.LocalAddress(sock); ok && at.Port() == 0 && isBound(sock) {
		_ = kernel.Bind(sock, kernel.InetAddress(kernel.DomainOf(sock), netip.AddrPortFrom(loopbackFor(sock), 0)))
	}
}

// refuseTaken is what the kernel says of a port that has its listener already.
func (q *Question) refuseTaken(port uint16) Answer {
	return q.refuse(unix.EADDRINUSE, "listen on port "+strconv.Itoa(int(port))+" of loopback, where a server outside the session listens", "")
}

// boundHere is an option by which the broker marks the sockets that it has bound
// to loopback. The mark lasts as long as the socket, commands cannot set it, and
// it has no effect after a bind.
const boundHere = unix.IP_FREEBIND

func markBound(sock int) error { return unix.SetsockoptInt(sock, unix.IPPROTO_IP, boundHere, 1) }

func isBound(sock int) bool { return isSet(sock, unix.IPPROTO_IP, boundHere) }

// socketLocks keep what the broker does with one socket of a session in order: its
// state must not change between a look at it and what follows from that. A command
// can make a connect block for as long as it likes, so these are not for other
// sessions, and their number is that of the threads which a session can hold so.
type socketLocks [16]sync.Mutex

// lock returns how to unlock.
func (s *socketLocks) lock(sock int) func() {
	cookie, _ := unix.GetsockoptUint64(sock, unix.SOL_SOCKET, unix.SO_COOKIE)
	l := &s[cookie%uint64(len(s))]
	l.Lock()
	return l.Unlock
}

// bindAgain binds, and once more when the address was held by a socket that
// only the broker still had.
func (q *Question) bindAgain(sock int, raw []byte) error {
	err := kernel.Bind(sock, raw)
	if err == unix.EADDRINUSE && q.broker.kept.sweep() {
		err = kernel.Bind(sock, raw)
	}
	// Or by a listening socket that the broker holds for connects to it.
	for range 20 {
		if err != unix.EADDRINUSE || !q.broker.session.ports.AreHeld() {
			break
		}
		q.rest(func() { time.Sleep(lookAgain) })
		err = kernel.Bind(sock, raw)
	}
	return err
}

// loopbackFor returns what the unspecified address becomes for a socket: an IPv6
// socket that takes IPv4 too is bound to IPv4's loopback, where both can be had.
func loopbackFor(sock int) netip.Addr {
	v4 := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if kernel.DomainOf(sock) == unix.AF_INET {
		return v4
	}
	if only, err := unix.GetsockoptInt(sock, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY); err == nil && only == 0 {
		return v4
	}
	return netip.IPv6Loopback()
}

// unprivilegedPort returns the first port that any user may bind.
func unprivilegedPort() int {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if n, err2 := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && err2 == nil {
		return n
	}
	return 1024
}

// listen listens, and remembers the socket as one that the session may reach. A
// socket without an address gets one on loopback; the kernel would take all.
func (q *Question) listen() Answer {
	if q.lookupOf(q.Arg(0)) != nil {
		return Fail(unix.EOPNOTSUPP)
	}
	sock, release, e := q.socketOf(q.Arg(0))
	if e != 0 {
		return Fail(e)
	}
	done := false
	defer func() { release(done) }()
	c := q.broker.session
	domain := kernel.DomainOf(sock)
	inet := domain == unix.AF_INET || domain == unix.AF_INET6
	if inet && !c.Policy.Network {
		defer c.ports.InTurn()()
		if a := q.listenLoopback(sock, domain); a.err != 0 {
			return a
		}
	} else if err := unix.Listen(sock, q.Arg(1)); err != nil {
		return failed(err)
	}
	done = true
	if inet {
		c.ports.Add(sock)
	} else {
		c.names.Add(sock)
	}
	return Answer{}
}

// listenLoopback listens with a socket that the broker has bound, now or before.
// Any other has an address that it could lose, and would then listen everywhere.
func (q *Question) listenLoopback(sock, domain int) Answer {
	defer q.broker.session.Sockets.lock(sock)()
	at, ok := kernel.LocalAddress(sock)
	if ok && at.Port() == 0 {
		err := kernel.Bind(sock, kernel.InetAddress(domain, netip.AddrPortFrom(loopbackFor(sock), 0)))
		if err == nil {
			err = markBound(sock)
		}
		if err != nil {
			return failed(err)
		}
		at, ok = kernel.LocalAddress(sock)
	}
	if !ok || !isBound(sock) {
		return Fail(unix.EINVAL)
	}
	if !at.Addr().Unmap().IsLoopback() {
		return q.refuse(unix.EACCES, "listen on "+at.String(), q.permitNetwork())
	}
	if q.broker.session.ports.Taken(at.Port()) {
		return q.refuseTaken(at.Port())
	}
	return failed(unix.Listen(sock, q.Arg(1)))
}
