package network

import "net/netip"

// RefuseBusy remembers that a command was refused a connection for which the mechanism
// had no room.
func (g *Gate) RefuseBusy(to netip.AddrPort) {
	to = netip.AddrPortFrom(plain(to.Addr()), to.Port())
	v := Verdict{Host: to.Addr().String(), Reason: "too many connections to different ports at once; close some"}
	if names := g.reached.names(to.Addr()); len(names) > 0 {
		v.Host = names[0]
	}
	g.refuse(v, to, v.Reason)
}
