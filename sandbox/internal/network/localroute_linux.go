package network

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/netlink"
)

// localRoute reports whether the kernel takes what is sent to an address for itself.
// It does so for more than the addresses of its interfaces: load balancers and anycast
// are set up as routes. Binding tells less of IPv6, and too much where the machine lets
// programs bind to any address.
func localRoute(addr netip.Addr) bool {
	kind, err := netlink.RouteKind(addr, 0)
	if err != nil { // also where there is no route
		return ownSource(addr)
	}
	return kind == unix.RTN_LOCAL || kind == unix.RTN_ANYCAST
}

// ownSource asks in a way that every program may: to its own addresses of IPv4 the
// kernel sends from themselves. Connecting a datagram socket sends nothing. Without a
// socket nobody knows, which must not open the host.
func ownSource(addr netip.Addr) bool {
	domain := unix.AF_INET6
	var to unix.Sockaddr = &unix.SockaddrInet6{Port: 9, Addr: addr.As16()}
	if addr.Is4() {
		domain, to = unix.AF_INET, &unix.SockaddrInet4{Port: 9, Addr: addr.As4()}
	}
	sock, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err != unix.EAFNOSUPPORT
	}
	defer unix.Close(sock)
	if unix.Connect(sock, to) != nil {
		return false
	}
	switch from, _ := unix.Getsockname(sock); from := from.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(from.Addr) == addr
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(from.Addr) == addr
	}
	return true
}
