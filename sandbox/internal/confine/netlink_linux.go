//go:build amd64 || arm64

package confine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// A netlink is a socket by which the kernel is told how a network namespace is laid
// out: that in which the socket was made, wherever who uses it is.
type netlinkSocket int

// openNetlink makes one for the namespace of the calling thread.
func openNetlink() (netlinkSocket, error) {
	sock, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return -1, fmt.Errorf("a netlink socket: %w", err)
	}
	return netlinkSocket(sock), nil
}

// A message is a request to the kernel being written: a header, a fixed part and
// attributes.
type message struct{ bytes.Buffer }

func newMessage(kind, flags uint16, fixed any) *message {
	m := new(message)
	m.write(unix.NlMsghdr{Type: kind, Flags: flags | unix.NLM_F_REQUEST | unix.NLM_F_ACK})
	m.write(fixed)
	return m
}

func (m *message) write(v any) { _ = binary.Write(m, binary.NativeEndian, v) } // a buffer takes all that has a size

// attr appends an attribute, whose value is one of fixed size.
func (m *message) attr(kind uint16, value any) *message {
	return m.nest(kind, func() { m.write(value) })
}

// name appends an attribute that is text.
func (m *message) name(kind uint16, text string) *message {
	return m.attr(kind, append([]byte(text), 0))
}

// nest appends an attribute that holds what f appends.
func (m *message) nest(kind uint16, f func()) *message {
	at := m.Len()
	m.write(unix.RtAttr{Type: kind})
	f()
	binary.NativeEndian.PutUint16(m.Bytes()[at:], uint16(m.Len()-at))
	for m.Len()%unix.NLMSG_ALIGNTO != 0 {
		m.WriteByte(0)
	}
	return m
}

// ask sends the request and returns what the kernel answers.
func (n netlinkSocket) ask(m *message) error {
	answer, err := n.exchange(m)
	if err != nil {
		return err
	}
	return failureOf(answer)
}

// exchange sends the request and returns the first message of the answer.
func (n netlinkSocket) exchange(m *message) ([]byte, error) {
	binary.NativeEndian.PutUint32(m.Bytes(), uint32(m.Len()))
	if err := ignoringEINTR(func() error { return unix.Sendto(int(n), m.Bytes(), 0, &unix.SockaddrNetlink{}) }); err != nil {
		return nil, err
	}
	answer := make([]byte, 4096)
	size := 0
	err := ignoringEINTR(func() (err error) {
		size, _, err = unix.Recvfrom(int(n), answer, 0)
		return err
	})
	return answer[:max(size, 0)], err
}

// failureOf reads how a request went.
func failureOf(answer []byte) error {
	if len(answer) < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return unix.EBADMSG
	}
	if e := errnoOf(int(int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])))); e != 0 {
		return e
	}
	return nil
}

// routeKind asks what kind of route leads to an address: RTN_LOCAL and the like.
func routeKind(to netip.Addr, link uint32) (kind uint8, err error) {
	sock, err := openNetlink()
	if err != nil {
		return 0, err
	}
	defer unix.Close(int(sock))
	m := newMessage(unix.RTM_GETROUTE, 0, unix.RtMsg{Family: familyOf(to), Dst_len: uint8(to.BitLen())}).attr(unix.RTA_DST, to.AsSlice())
	if link != 0 {
		m.attr(unix.RTA_OIF, link)
	}
	answer, err := sock.exchange(m)
	switch {
	case err != nil:
		return 0, err
	case len(answer) < unix.SizeofNlMsghdr+unix.SizeofRtMsg || binary.NativeEndian.Uint16(answer[4:]) != unix.RTM_NEWROUTE:
		return 0, failureOf(answer)
	}
	return answer[unix.SizeofNlMsghdr+unix.SizeofRtMsg-5], nil // rtm_type, before rtm_flags
}

const newObject = unix.NLM_F_CREATE | unix.NLM_F_EXCL

// familyOf is that of an address.
func familyOf(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// addLinks makes the two ends of a way, one in the namespace of the socket and one in
// that of a thread. Both have the same address of their link: so nobody has to ask the
// other side for it, and neither keeps what it asked.
func (n netlinkSocket) addLinks(thread int) error {
	const peerInfo = 1 // VETH_INFO_PEER
	m := newMessage(unix.RTM_NEWLINK, newObject, unix.IfInfomsg{Index: wayIndex})
	link := func() {
		m.name(unix.IFLA_IFNAME, wayName).attr(unix.IFLA_ADDRESS, [6]byte{2, 0, 0, 0, 0, 1}).attr(unix.IFLA_MTU, uint32(linkUnit))
	}
	link()
	m.nest(unix.IFLA_LINKINFO, func() {
		m.name(unix.IFLA_INFO_KIND, wayKind).nest(unix.IFLA_INFO_DATA, func() {
			m.nest(peerInfo, func() {
				m.write(unix.IfInfomsg{Index: gatewayIndex})
				link()
				m.attr(unix.IFLA_NET_NS_PID, uint32(thread))
			})
		})
	})
	return n.ask(m)
}

// linkUnit is the most that the way carries in a packet: larger ones get no faster.
const linkUnit = 16384

// raise starts an interface, without the search for neighbours, and without IPv6
// addresses of its own.
func (n netlinkSocket) raise(index int) error {
	const noAddresses = 1 // IN6_ADDR_GEN_MODE_NONE
	bare := newMessage(unix.RTM_NEWLINK, 0, unix.IfInfomsg{Index: int32(index)})
	bare.nest(unix.IFLA_AF_SPEC, func() {
		bare.nest(unix.AF_INET6, func() { bare.attr(unix.IFLA_INET6_ADDR_GEN_MODE, uint8(noAddresses)) })
	})
	if err := n.ask(bare); err != nil && err != unix.EAFNOSUPPORT { // there is no IPv6
		return err
	}
	up := uint32(unix.IFF_UP | unix.IFF_NOARP)
	return n.ask(newMessage(unix.RTM_NEWLINK, 0, unix.IfInfomsg{Index: int32(index), Flags: up, Change: up}))
}

// addAddress gives an interface an address. It leads nowhere by itself.
func (n netlinkSocket) addAddress(index int, a netip.Addr) error {
	m := newMessage(unix.RTM_NEWADDR, newObject, unix.IfAddrmsg{Family: familyOf(a), Prefixlen: uint8(a.BitLen()), Index: uint32(index)})
	m.attr(unix.IFA_LOCAL, a.AsSlice()).attr(unix.IFA_ADDRESS, a.AsSlice())
	return n.ask(m.attr(unix.IFA_FLAGS, uint32(unix.IFA_F_NODAD|unix.IFA_F_NOPREFIXROUTE)))
}

// A route is a way to what has a prefix.
type route struct {
	table uint32
	to    netip.Prefix
	via   netip.Addr // zero: it is at the other end of the interface
	link  int
	local bool // it is here
}

// addRoute adds a route, in place of one that is the same otherwise.
func (n netlinkSocket) addRoute(r route) error {
	return n.ask(r.message(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE))
}

func (n netlinkSocket) removeRoute(r route) error { return n.ask(r.message(unix.RTM_DELROUTE, 0)) }

func (r route) message(kind, flags uint16) *message {
	fixed := unix.RtMsg{Family: familyOf(r.to.Addr()), Dst_len: uint8(r.to.Bits()), Protocol: unix.RTPROT_STATIC, Type: unix.RTN_UNICAST}
	switch {
	case r.local:
		fixed.Type, fixed.Scope = unix.RTN_LOCAL, unix.RT_SCOPE_HOST
	case r.via.IsValid():
		fixed.Flags = unix.RTNH_F_ONLINK
	default:
		fixed.Scope = unix.RT_SCOPE_LINK
	}
	m := newMessage(kind, flags, fixed)
	m.attr(unix.RTA_TABLE, r.table).attr(unix.RTA_DST, r.to.Addr().AsSlice()).attr(unix.RTA_OIF, uint32(r.link))
	if r.via.IsValid() {
		m.attr(unix.RTA_GATEWAY, r.via.AsSlice())
	}
	return m
}

// withoutMulticast takes the route away that IPv6 has by itself.
func (n netlinkSocket) withoutMulticast(index int) error {
	m := newMessage(unix.RTM_DELROUTE, 0, unix.RtMsg{Family: unix.AF_INET6, Dst_len: 8, Type: unix.RTN_MULTICAST, Table: unix.RT_TABLE_LOCAL})
	m.attr(unix.RTA_DST, [16]byte{0xff}).attr(unix.RTA_OIF, uint32(index))
	if err := n.ask(m); err != unix.ESRCH {
		return err
	}
	return nil
}

// A routeRule is a rule that says by which table packets find their way.
type routeRule struct {
	family   uint8
	order    uint32 // the lowest comes first
	from     string // the interface they come in by, "" for any
	to       string // the interface that a socket is bound to, "" for any
	protocol uint8  // 0 for any
	port     uint16 // where they are going to; 0 for any
	table    uint32 // 0: they are refused
	drop     bool   // and nobody is told
}

func (s routeRule) message(kind, flags uint16) *message {
	action := uint8(unix.FR_ACT_TO_TBL)
	switch {
	case s.drop:
		action = unix.FR_ACT_BLACKHOLE
	case s.table == 0:
		action = unix.FR_ACT_PROHIBIT
	}
	m := newMessage(kind, flags, unix.RtMsg{Family: s.family, Type: action}) // the same layout as struct fib_rule_hdr
	m.attr(unix.FRA_PRIORITY, s.order)
	if s.table != 0 {
		m.attr(unix.FRA_TABLE, s.table)
	}
	if s.from != "" {
		m.name(unix.FRA_IIFNAME, s.from)
	}
	if s.to != "" {
		m.name(unix.FRA_OIFNAME, s.to)
	}
	if s.protocol != 0 {
		m.attr(unix.FRA_IP_PROTO, s.protocol)
	}
	if s.port != 0 {
		m.attr(unix.FRA_DPORT_RANGE, [2]uint16{s.port, s.port})
	}
	return m
}

func (n netlinkSocket) addRouteRule(s routeRule) error {
	return n.ask(s.message(unix.RTM_NEWRULE, newObject))
}

func (n netlinkSocket) removeRouteRule(s routeRule) error {
	return n.ask(s.message(unix.RTM_DELRULE, 0))
}
