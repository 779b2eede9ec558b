//go:build amd64 || arm64

package gateway

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/netlink"
)

// A netlinkSocket is one by which the kernel is told how a network namespace is laid out.
type netlinkSocket int

// OpenNetlink makes one for the namespace of the calling thread.
func OpenNetlink() (netlinkSocket, error) {
	sock, err := netlink.Open()
	return netlinkSocket(sock), err
}

func (n netlinkSocket) ask(m *netlink.Message) error { return netlink.Socket(n).Ask(m) }

const newObject = unix.NLM_F_CREATE | unix.NLM_F_EXCL

// addLinks makes the two ends of a way, one in the namespace of the socket and one in
// that of a thread. Both have the same address of their link: so nobody has to ask the
// other side for it, and neither keeps what it asked.
func (n netlinkSocket) addLinks(thread int, kind string) error {
	const peerInfo = 1 // VETH_INFO_PEER
	m := netlink.NewMessage(unix.RTM_NEWLINK, newObject, unix.IfInfomsg{Index: WayIndex})
	link := func() {
		m.Name(unix.IFLA_IFNAME, WayName).Attr(unix.IFLA_ADDRESS, [6]byte{2, 0, 0, 0, 0, 1}).Attr(unix.IFLA_MTU, uint32(linkUnit))
	}
	link()
	m.Nest(unix.IFLA_LINKINFO, func() {
		m.Name(unix.IFLA_INFO_KIND, kind).Nest(unix.IFLA_INFO_DATA, func() {
			m.Nest(peerInfo, func() {
				m.Put(unix.IfInfomsg{Index: gatewayIndex})
				link()
				m.Attr(unix.IFLA_NET_NS_PID, uint32(thread))
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
	bare := netlink.NewMessage(unix.RTM_NEWLINK, 0, unix.IfInfomsg{Index: int32(index)})
	bare.Nest(unix.IFLA_AF_SPEC, func() {
		bare.Nest(unix.AF_INET6, func() { bare.Attr(unix.IFLA_INET6_ADDR_GEN_MODE, uint8(noAddresses)) })
	})
	if err := n.ask(bare); err != nil && err != unix.EAFNOSUPPORT { // there is no IPv6
		return err
	}
	up := uint32(unix.IFF_UP | unix.IFF_NOARP)
	return n.ask(netlink.NewMessage(unix.RTM_NEWLINK, 0, unix.IfInfomsg{Index: int32(index), Flags: up, Change: up}))
}

// addAddress gives an interface an address. It leads nowhere by itself.
func (n netlinkSocket) addAddress(index int, a netip.Addr) error {
	m := netlink.NewMessage(unix.RTM_NEWADDR, newObject, unix.IfAddrmsg{Family: netlink.Family(a), Prefixlen: uint8(a.BitLen()), Index: uint32(index)})
	m.Attr(unix.IFA_LOCAL, a.AsSlice()).Attr(unix.IFA_ADDRESS, a.AsSlice())
	return n.ask(m.Attr(unix.IFA_FLAGS, uint32(unix.IFA_F_NODAD|unix.IFA_F_NOPREFIXROUTE)))
}

// A Route is a way to what has a prefix.
type Route struct {
	Table uint32
	To    netip.Prefix
	Via   netip.Addr // zero: it is at the other end of the interface
	Link  int
	local bool // it is here
}

// AddRoute adds a route, in place of one that is the same otherwise.
func (n netlinkSocket) AddRoute(r Route) error {
	return n.ask(r.message(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE))
}

func (n netlinkSocket) removeRoute(r Route) error { return n.ask(r.message(unix.RTM_DELROUTE, 0)) }

func (r Route) message(kind, flags uint16) *netlink.Message {
	fixed := unix.RtMsg{Family: netlink.Family(r.To.Addr()), Dst_len: uint8(r.To.Bits()), Protocol: unix.RTPROT_STATIC, Type: unix.RTN_UNICAST}
	switch {
	case r.local:
		fixed.Type, fixed.Scope = unix.RTN_LOCAL, unix.RT_SCOPE_HOST
	case r.Via.IsValid():
		fixed.Flags = unix.RTNH_F_ONLINK
	default:
		fixed.Scope = unix.RT_SCOPE_LINK
	}
	m := netlink.NewMessage(kind, flags, fixed)
	m.Attr(unix.RTA_TABLE, r.Table).Attr(unix.RTA_DST, r.To.Addr().AsSlice()).Attr(unix.RTA_OIF, uint32(r.Link))
	if r.Via.IsValid() {
		m.Attr(unix.RTA_GATEWAY, r.Via.AsSlice())
	}
	return m
}

// withoutMulticast takes the route away that IPv6 has by itself.
func (n netlinkSocket) withoutMulticast(index int) error {
	m := netlink.NewMessage(unix.RTM_DELROUTE, 0, unix.RtMsg{Family: unix.AF_INET6, Dst_len: 8, Type: unix.RTN_MULTICAST, Table: unix.RT_TABLE_LOCAL})
	m.Attr(unix.RTA_DST, [16]byte{0xff}).Attr(unix.RTA_OIF, uint32(index))
	if err := n.ask(m); err != unix.ESRCH {
		return err
	}
	return nil
}

// A RouteRule is a rule that says by which table packets find their way.
type RouteRule struct {
	Family   uint8
	Order    uint32 // the lowest comes first
	from     string // the interface they come in by, "" for any
	to       string // the interface that a socket is bound to, "" for any
	Protocol uint8  // 0 for any
	port     uint16 // where they are going to; 0 for any
	Table    uint32 // 0: they are refused
	drop     bool   // and nobody is told
}

func (s RouteRule) message(kind, flags uint16) *netlink.Message {
	action := uint8(unix.FR_ACT_TO_TBL)
	switch {
	case s.drop:
		action = unix.FR_ACT_BLACKHOLE
	case s.Table == 0:
		action = unix.FR_ACT_PROHIBIT
	}
	m := netlink.NewMessage(kind, flags, unix.RtMsg{Family: s.Family, Type: action}) // the same layout as struct fib_rule_hdr
	m.Attr(unix.FRA_PRIORITY, s.Order)
	if s.Table != 0 {
		m.Attr(unix.FRA_TABLE, s.Table)
	}
	if s.from != "" {
		m.Name(unix.FRA_IIFNAME, s.from)
	}
	if s.to != "" {
		m.Name(unix.FRA_OIFNAME, s.to)
	}
	if s.Protocol != 0 {
		m.Attr(unix.FRA_IP_PROTO, s.Protocol)
	}
	if s.port != 0 {
		m.Attr(unix.FRA_DPORT_RANGE, [2]uint16{s.port, s.port})
	}
	return m
}

// AddRouteRule adds a rule that says which table is asked for routes.
func (n netlinkSocket) AddRouteRule(s RouteRule) error {
	return n.ask(s.message(unix.RTM_NEWRULE, newObject))
}

func (n netlinkSocket) removeRouteRule(s RouteRule) error {
	return n.ask(s.message(unix.RTM_DELRULE, 0))
}
