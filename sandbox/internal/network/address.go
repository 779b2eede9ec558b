package network

import "net/netip"

// A special address is one that names of the internet have no business to lead to.
type special struct {
	kind string // what it is called
	bits int    // the length of its network's prefix: a rule that is no wider names it
}

// never is a length that no prefix has: no rule can name such an address.
const never = 129

func networks(all ...string) (parsed []netip.Prefix) {
	for _, s := range all {
		parsed = append(parsed, netip.MustParsePrefix(s))
	}
	return parsed
}

// loopback is the session's own, as is what programs take for it.
var loopback = networks("127.0.0.0/8", "::1/128", "0.0.0.0/8", "::/128")

// A kind of special address.
type kind struct {
	name     string
	bits     int // as special has them, 0 for those of the network itself
	networks []netip.Prefix
}

// kinds has the special networks. Those for documentation are not among them: they
// lead nowhere but where somebody has made them lead on purpose.
var kinds = []kind{
	{"loopback", never, networks("127.0.0.0/8", "::1/128")},
	{"unspecified", never, networks("0.0.0.0/8", "::/128")},
	{"multicast", 0, networks("224.0.0.0/4", "ff00::/8")},
	// Azure's is in the midst of public addresses; the others are in networks below too.
	{"metadata", 0, networks("168.63.129.16/32")},
	{"metadata", 16, networks("169.254.169.254/32", "169.254.170.2/32", "169.254.42.42/32")},
	{"metadata", 10, networks("100.100.100.200/32")},
	{"metadata", 24, networks("192.0.0.192/32")},
	{"metadata", 7, networks("fd00:ec2::254/128", "fd20:ce::254/128", "fd00:42::42/128")},
	{"private", 0, networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")},
	{"link-local", 0, networks("169.254.0.0/16", "fe80::/10")},
	{"carrier-grade NAT", 0, networks("100.64.0.0/10")},
	{"reserved", 0, networks("192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "64:ff9b:1::/48", "2001::/32")},
}

var (
	nat64    = netip.MustParsePrefix("64:ff9b::/96")
	global6  = netip.MustParsePrefix("2000::/3")
	carriers = []carrier{
		{nat64, 12, 0},
		{netip.MustParsePrefix("64:ff9b:1::/96"), 12, 0},  // a NAT64 of one's own, as most are set up
		{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, 0}, // IPv4-translated
		{netip.MustParsePrefix("::/96"), 12, 0},           // IPv4-compatible
		{netip.MustParsePrefix("2002::/16"), 2, 0},        // 6to4
		{netip.MustParsePrefix("2001::/32"), 12, 0xff},    // Teredo
	}
)

// A carrier is an IPv6 network whose addresses have an IPv4 address within.
type carrier struct {
	prefix netip.Prefix
	at     int  // the byte that it begins at
	mask   byte // its bytes are written with this xored in
}

// plain is an address without the forms that mean the same: IPv4 in IPv6, zones.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// embedded returns the IPv4 address within an IPv6 address that leads to it, and the
// length of what stands before it.
func embedded(addr netip.Addr) (inner netip.Addr, bits int, ok bool) {
	if !addr.Is6() {
		return inner, 0, false
	}
	b := addr.As16()
	for _, c := range carriers {
		if !c.prefix.Contains(addr) {
			continue
		}
		v4 := [4]byte(b[c.at:])
		for i := range v4 {
			v4[i] ^= c.mask
		}
		return netip.AddrFrom4(v4), 8 * c.at, true
	}
	return inner, 0, false
}

// specialOf says what is special about an address, where something is. Addresses are
// in the form of plain.
func specialOf(addr netip.Addr) (special, bool) {
	for _, k := range kinds[:2] { // loopback may be the host's own as well
		if s, ok := k.of(addr); ok {
			return s, true
		}
	}
	if bits, ok := hostAddresses.find(addr); ok {
		return special{"host's own", bits}, true
	}
	for _, k := range kinds[2:] {
		if s, ok := k.of(addr); ok {
			return s, true
		}
	}
	if inner, bits, ok := embedded(addr); ok {
		if s, ok := specialOf(inner); ok {
			return special{s.kind, min(bits+s.bits, never)}, true
		}
		if nat64.Contains(addr) {
			return special{}, false
		}
	}
	if addr.Is6() && !global6.Contains(addr) {
		return special{"reserved", 3}, true
	}
	return special{}, false
}

// of returns the kind's entry for an address that is of it.
func (k kind) of(addr netip.Addr) (special, bool) {
	for _, n := range k.networks {
		if !n.Contains(addr) {
			continue
		}
		if k.bits != 0 {
			return special{k.name, k.bits}, true
		}
		return special{k.name, n.Bits()}, true
	}
	return special{}, false
}
