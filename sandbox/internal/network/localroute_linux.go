package network

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// localRoute reports whether the kernel takes what is sent to an address for itself.
// It does so for more than the addresses of its interfaces: load balancers and anycast
// are set up as routes. Binding tells less of IPv6, and too much where the machine lets
// programs bind to any address.
func localRoute(addr netip.Addr) bool {
	kind, err := routeKind(addr)
	if err != nil { // also where there is no route
		return ownSource(addr)
	}
	return kind == unix.RTN_LOCAL || kind == unix.RTN_ANYCAST
}

// A routeRequest is the message that asks for a route, up to the address.
type routeRequest struct {
	Header unix.NlMsghdr
	Route  unix.RtMsg
	To     unix.RtAttr
}

// routeKind asks the kernel for the type of the route to an address.
func routeKind(addr netip.Addr) (kind byte, err error) {
	sock, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	defer unix.Close(sock)
	wait := unix.Timeval{Sec: 1}
	if err := unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return 0, err
	}
	if err := unix.Sendto(sock, routeMessage(unix.RTM_GETROUTE, 0, unix.RtMsg{}, addr), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	reply := make([]byte, 4096)
	n, _, err := unix.Recvfrom(sock, reply, 0)
	if err != nil {
		return 0, err
	}
	if n < unix.SizeofNlMsghdr+unix.SizeofRtMsg {
		return 0, errors.New("the kernel's answer is short")
	}
	switch binary.NativeEndian.Uint16(reply[4:]) {
	case unix.RTM_NEWROUTE:
		return reply[unix.SizeofNlMsghdr+7], nil // RtMsg.Type
	case unix.NLMSG_ERROR:
		return 0, unix.Errno(-int32(binary.NativeEndian.Uint32(reply[unix.SizeofNlMsghdr:])))
	}
	return 0, errors.New("the kernel's answer is of another kind")
}

// routeMessage writes a request about a route to an address.
func routeMessage(kind, flags uint16, route unix.RtMsg, addr netip.Addr) []byte {
	to := addr.AsSlice()
	route.Family = unix.AF_INET
	if addr.Is6() {
		route.Family = unix.AF_INET6
	}
	if route.Dst_len == 0 {
		route.Dst_len = uint8(addr.BitLen())
	}
	m := routeRequest{
		Header: unix.NlMsghdr{Type: kind, Flags: flags | unix.NLM_F_REQUEST},
		Route:  route,
		To:     unix.RtAttr{Type: unix.RTA_DST, Len: uint16(unix.SizeofRtAttr + len(to))},
	}
	m.Header.Len = uint32(binary.Size(m) + len(to))
	packed, _ := binary.Append(nil, binary.NativeEndian, m) // all of it has a size
	return append(packed, to...)
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
