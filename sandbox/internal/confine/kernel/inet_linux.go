//go:build amd64 || arm64

package kernel

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// ParseInet reads a struct sockaddr_in or sockaddr_in6.
func ParseInet(raw []byte) (netip.AddrPort, bool) {
	if len(raw) < unix.SizeofSockaddrInet4 {
		return netip.AddrPort{}, false
	}
	port := binary.BigEndian.Uint16(raw[2:])
	switch int(binary.NativeEndian.Uint16(raw)) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), port), true
	case unix.AF_INET6:
		if len(raw) >= 24 {
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])), port), true
		}
	}
	return netip.AddrPort{}, false
}

// InetAddress writes an address for a socket of the given domain; an IPv4
// address is mapped for an IPv6 socket.
func InetAddress(domain int, a netip.AddrPort) []byte {
	if domain == unix.AF_INET {
		raw := make([]byte, unix.SizeofSockaddrInet4)
		binary.NativeEndian.PutUint16(raw, unix.AF_INET)
		binary.BigEndian.PutUint16(raw[2:], a.Port())
		v4 := a.Addr().Unmap()
		if v4.Is4() {
			b := v4.As4()
			copy(raw[4:], b[:])
		}
		return raw
	}
	raw := make([]byte, unix.SizeofSockaddrInet6)
	binary.NativeEndian.PutUint16(raw, unix.AF_INET6)
	binary.BigEndian.PutUint16(raw[2:], a.Port())
	b := a.Addr().As16()
	copy(raw[8:], b[:])
	return raw
}

// LocalAddress returns where an internet socket is bound.
func LocalAddress(sock int) (netip.AddrPort, bool) {
	sa, err := unix.Getsockname(sock)
	if err != nil {
		return netip.AddrPort{}, false
	}
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)), true
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port)), true
	}
	return netip.AddrPort{}, false
}
