package network

import "net/netip"

// Reached reports whether an address was handed out in this session for some name.
func (g *Gate) Reached(addr netip.Addr) bool { return len(g.reached.names(plain(addr))) > 0 }
