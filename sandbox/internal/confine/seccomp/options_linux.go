//go:build amd64 || arm64

package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Where a packet goes is not settled by the address alone that the broker
// judges: socket options choose the interface, the route, the headers. So what
// commands may set is a list, and what steers is not on it.

// A Level is a level of setsockopt(2) with some of its options.
type Level struct {
	Level   uint32
	Options []uint32
}

// settable are the options that programs set: none of them says where a packet
// goes, or has a connection made by a send.
var settable = []Level{
	{unix.SOL_SOCKET, []uint32{
		unix.SO_REUSEADDR, unix.SO_REUSEPORT, unix.SO_BROADCAST, unix.SO_KEEPALIVE, unix.SO_OOBINLINE, unix.SO_LINGER,
		unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDLOWAT, unix.SO_RCVLOWAT, unix.SO_PRIORITY, unix.SO_MAX_PACING_RATE,
		unix.SO_SNDTIMEO, unix.SO_RCVTIMEO, unix.SO_SNDTIMEO_NEW, unix.SO_RCVTIMEO_NEW,
		unix.SO_TIMESTAMP, unix.SO_TIMESTAMPNS, unix.SO_TIMESTAMP_NEW, unix.SO_TIMESTAMPNS_NEW,
		unix.SO_PASSCRED, unix.SO_PASSSEC, unix.SO_PASSPIDFD, unix.SO_PASSRIGHTS, unix.SO_PEEK_OFF, unix.SO_ZEROCOPY}},
	{unix.IPPROTO_TCP, []uint32{
		unix.TCP_NODELAY, unix.TCP_CORK, unix.TCP_MAXSEG, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT,
		unix.TCP_SYNCNT, unix.TCP_LINGER2, unix.TCP_DEFER_ACCEPT, unix.TCP_WINDOW_CLAMP, unix.TCP_QUICKACK,
		unix.TCP_CONGESTION, unix.TCP_THIN_LINEAR_TIMEOUTS, unix.TCP_THIN_DUPACK, unix.TCP_USER_TIMEOUT,
		unix.TCP_NOTSENT_LOWAT, unix.TCP_INQ}},
	{unix.IPPROTO_IP, []uint32{
		unix.IP_TOS, unix.IP_TTL, unix.IP_MTU_DISCOVER, unix.IP_RECVERR, unix.IP_RECVTTL, unix.IP_RECVTOS,
		unix.IP_BIND_ADDRESS_NO_PORT}},
	{unix.IPPROTO_IPV6, []uint32{
		unix.IPV6_V6ONLY, unix.IPV6_TCLASS, unix.IPV6_UNICAST_HOPS, unix.IPV6_MTU_DISCOVER, unix.IPV6_RECVERR,
		unix.IPV6_RECVTCLASS, unix.IPV6_RECVHOPLIMIT}},
}

// headers are those that put foreign headers into packets. They stay refused
// where the network is open: nothing but an attack needs them.
var headers = []Level{
	{unix.IPPROTO_IP, []uint32{unix.IP_OPTIONS}},
	{unix.IPPROTO_IPV6, []uint32{
		unix.IPV6_RTHDR, unix.IPV6_HOPOPTS, unix.IPV6_DSTOPTS, unix.IPV6_RTHDRDSTOPTS, unix.IPV6_2292PKTOPTIONS}},
}

// optionRules let the settable options through. The answer to any other is that
// of a kernel that does not know it, with which programs go on.
func optionRules(o Options) []rule {
	set := rule{nr: unix.SYS_SETSOCKOPT, otherwise: retErrno(unix.ENOPROTOOPT)}
	listed, then := settable, uint32(retAllow)
	if o.network {
		listed, then, set.otherwise = headers, set.otherwise, retAllow
	} else { // what a netlink socket can be told concerns itself
		set.clauses = append(set.clauses, clause{when: []cond{{arg: 1, val: unix.SOL_NETLINK}}, then: retAllow})
	}
	if o.Datagrams {
		// Which of these a datagram socket has to accept is the broker's to know.
		for _, level := range datagramLevels {
			set.clauses = append(set.clauses, clause{when: []cond{{arg: 1, val: level}}, then: retNotify})
		}
		set.clauses = append(set.clauses, clause{when: []cond{{arg: 1, val: unix.SOL_SOCKET}, {arg: 2, val: unix.SO_REUSEPORT}}, then: retNotify})
	}
	for _, l := range listed {
		set.clauses = append(set.clauses, clause{when: []cond{{arg: 1, val: l.Level}, {arg: 2, in: l.Options}}, then: then})
	}
	return []rule{set}
}

// IsSettable reports whether commands may set an option of a level.
func IsSettable(at, option uint32) bool {
	return slices.ContainsFunc(settable, func(l Level) bool { return l.Level == at && slices.Contains(l.Options, option) })
}

// datagramLevels are those of the options that programs set for UDP.
var datagramLevels = []uint32{unix.IPPROTO_IP, unix.IPPROTO_IPV6, unix.IPPROTO_UDP}
