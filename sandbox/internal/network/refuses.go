package network

import "net/netip"

// Refuses words that a host and port, which a program failed to reach, are none of
// what the gate permits; "" when it would permit them. Nothing is remembered of it.
func (g *Gate) Refuses(host string, port uint16) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		v, hint := g.verdict(netip.AddrPortFrom(plain(addr), port))
		if v.Allowed {
			return ""
		}
		return blocked(v.Host, port, hint)
	}
	name := canonicalName(host)
	if !validName(name) || isLocalhost(name) {
		return ""
	}
	said := g.cfg.Rules.name(name)
	if no := said.deniedBy(port); no != "" {
		return blocked(name, port, deniedBy(no))
	}
	if said.permits(port) {
		return ""
	}
	return blocked(name, port, "")
}
