//go:build amd64 || arm64

package confine

import (
	"encoding/binary"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket comes here when the kind of socket is refused, and for every socket
// where the broker cannot duplicate a command's and therefore makes it.
func (q *question) socket() answer {
	domain, kind, proto := q.arg(0), q.arg(1)&typeMask, q.arg(2)
	network := q.broker.domain.confiner.policy.Network
	if !admitsSocket(domain, kind, proto, network) {
		permit := permitNetworkFlag
		if network || domain != unix.AF_INET && domain != unix.AF_INET6 {
			permit = ""
		}
		return q.refuse(unix.EACCES, "open "+socketName(domain, kind, proto), permit)
	}
	return q.broker.kept.make(q, domain, q.arg(1), proto)
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
	case proto == protoMPTCP:
		return "an MPTCP socket"
	}
	return "a raw network socket"
}

// address reads a socket address; its family comes first.
func (q *question) address() (raw []byte, family int, e unix.Errno) {
	size := q.arg(2)
	if size < 2 || size > unix.SizeofSockaddrAny+16 {
		return nil, 0, unix.EINVAL
	}
	raw = make([]byte, size)
	if !q.read(q.args[1], raw) {
		return nil, 0, unix.EFAULT
	}
	return raw, int(binary.NativeEndian.Uint16(raw)), 0
}

func (q *question) bind() answer {
	raw, family, e := q.address()
	if e != 0 {
		return fail(e)
	}
	sock, release, e := q.socketOf(q.arg(0))
	if e != 0 {
		return fail(e)
	}
	defer release(false)
	switch {
	case domainOf(sock) == unix.AF_UNIX:
		return q.bindUnix(sock, raw)
	case q.broker.domain.confiner.policy.Network:
		return failed(q.bindAgain(sock, raw))
	case family != unix.AF_INET && family != unix.AF_INET6:
		return fail(unix.EAFNOSUPPORT)
	}
	return q.bindLoopback(sock, raw)
}

// bindLoopback binds to loopback addresses; all addresses means all of those.
func (q *question) bindLoopback(sock int, raw []byte) answer {
	to, ok := parseInet(raw)
	if !ok {
		return fail(unix.EINVAL)
	}
	if to.Port() != 0 && int(to.Port()) < unprivilegedPort() {
		return fail(unix.EACCES)
	}
	ip := to.Addr()
	if ip.Unmap().IsUnspecified() {
		ip = loopbackFor(sock)
	}
	if !ip.Unmap().IsLoopback() {
		return q.refuse(unix.EACCES, "listen on "+to.String(), permitNetworkFlag)
	}
	return failed(q.bindAgain(sock, inetAddress(domainOf(sock), netip.AddrPortFrom(ip, to.Port()))))
}

// bindAgain binds, and once more when the address was held by a socket that
// only the broker still had.
func (q *question) bindAgain(sock int, raw []byte) error {
	err := rawBind(sock, raw)
	if err == unix.EADDRINUSE && q.broker.kept.sweep() {
		err = rawBind(sock, raw)
	}
	return err
}

// loopbackFor returns what the unspecified address becomes for a socket: an IPv6
// socket that takes IPv4 too is bound to IPv4's loopback, where both can be had.
func loopbackFor(sock int) netip.Addr {
	v4 := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if domainOf(sock) == unix.AF_INET {
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
func (q *question) listen() answer {
	sock, release, e := q.socketOf(q.arg(0))
	if e != 0 {
		return fail(e)
	}
	done := false
	defer func() { release(done) }()
	c := q.broker.domain.confiner
	domain := domainOf(sock)
	inet := domain == unix.AF_INET || domain == unix.AF_INET6
	if inet && !c.policy.Network {
		if a := q.toLoopback(sock, domain); a.err != 0 {
			return a
		}
	}
	if err := unix.Listen(sock, q.arg(1)); err != nil {
		return failed(err)
	}
	done = true
	if inet {
		c.ports.add(sock)
	} else {
		c.names.add(sock)
	}
	return answer{}
}

// toLoopback sees to it that a socket has a loopback address.
func (q *question) toLoopback(sock, domain int) answer {
	at, ok := localAddress(sock)
	switch {
	case !ok:
		return fail(unix.EACCES)
	case at.Port() == 0:
		return failed(rawBind(sock, inetAddress(domain, netip.AddrPortFrom(loopbackFor(sock), 0))))
	case !at.Addr().Unmap().IsLoopback():
		return q.refuse(unix.EACCES, "listen on "+at.String(), permitNetworkFlag)
	}
	return answer{}
}

func (q *question) connect() answer {
	raw, family, e := q.address()
	if e != 0 {
		return fail(e)
	}
	sock, release, e := q.socketOf(q.arg(0))
	if e != 0 {
		return fail(e)
	}
	var a answer
	defer func() { release(a.err == 0 || a.err == unix.EINPROGRESS) }()
	switch domain := domainOf(sock); {
	case domain == unix.AF_UNIX && family == unix.AF_UNIX:
		a = q.connectUnix(sock, raw)
	case domain == unix.AF_NETLINK, q.broker.domain.confiner.policy.Network && domain != unix.AF_UNIX, family == unix.AF_UNSPEC:
		a = failed(q.rawConnect(sock, raw))
	case family == unix.AF_INET || family == unix.AF_INET6:
		a = q.connectLoopback(sock, raw)
	default:
		a = fail(unix.EAFNOSUPPORT)
	}
	return a
}

// connectLoopback connects to a server that the session itself runs.
func (q *question) connectLoopback(sock int, raw []byte) answer {
	to, ok := parseInet(raw)
	if !ok {
		return fail(unix.EINVAL)
	}
	ip := to.Addr().Unmap()
	if !ip.IsLoopback() && !ip.IsUnspecified() {
		return q.refuse(unix.ENETUNREACH, "connect to "+netip.AddrPortFrom(ip, to.Port()).String(), permitNetworkFlag)
	}
	at, ours, others := q.broker.domain.confiner.ports.find(to.Port(), ip, domainOf(sock))
	if others {
		return q.refuse(unix.EACCES, "connect to "+netip.AddrPortFrom(ip, to.Port()).String()+
			", where a server outside the session listens", permitNetworkFlag)
	}
	if !ours {
		return fail(unix.ECONNREFUSED)
	}
	return failed(q.rawConnect(sock, inetAddress(domainOf(sock), netip.AddrPortFrom(at, to.Port()))))
}

// rawConnect connects for as long as the asker waits: a blocking socket gets a
// time limit and is asked again.
func (q *question) rawConnect(sock int, raw []byte) error {
	flags, err := unix.FcntlInt(uintptr(sock), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		return connectOnce(sock, raw)
	}
	old, err := unix.GetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil || old.Sec != 0 || old.Usec != 0 { // it has a limit of its own
		return connectOnce(sock, raw)
	}
	brief := unix.NsecToTimeval(int64(time.Second))
	_ = unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &brief)
	defer func() { _ = unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, old) }()
	for {
		err := connectOnce(sock, raw)
		if err != unix.EINPROGRESS && err != unix.EAGAIN && err != unix.EALREADY || !q.valid() {
			return err
		}
	}
}

func connectOnce(sock int, raw []byte) error {
	return ignoringEINTR(func() error { return sockaddrCall(unix.SYS_CONNECT, sock, raw) })
}

func rawBind(sock int, raw []byte) error { return sockaddrCall(unix.SYS_BIND, sock, raw) }

func sockaddrCall(nr uintptr, sock int, raw []byte) error {
	if _, _, e := unix.Syscall(nr, uintptr(sock), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw))); e != 0 {
		return e
	}
	return nil
}

func domainOf(sock int) int {
	d, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return -1
	}
	return d
}
