//go:build amd64 || arm64

package confine

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// A way is that of the commands to an address or network which the gate permits.
type way struct {
	ports     []uint16
	every     bool // every port
	live      int  // connections
	forgotten bool // it ends with the last of them
}

// reach makes a way to what the gate permits.
func (g *gateway) reach(r network.Reach) error {
	if r.Prefix = unmapped(r.Prefix); r.Prefix.Addr().IsLoopback() { // it stays the session's own
		return nil
	}
	if familyIndex(r.Prefix) >= g.families {
		return errors.New("the session has no IPv6")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed { // the gate may have another one
		return nil
	}
	w := g.reached[r.Prefix]
	if w == nil {
		if len(g.reached) >= mostReached {
			return network.ErrTooMany
		}
		w = &way{}
		g.reached[r.Prefix] = w
	}
	w.forgotten = false
	switch {
	case w.every:
		return nil
	case r.Ports == nil:
		if err := g.openAny(); err != nil {
			return err
		}
		if err := g.commands.addRoute(routeTo(r.Prefix, 0)); err != nil {
			return err
		}
		w.every = true
		return nil
	}
	for _, number := range r.Ports {
		if number == namePort || slices.Contains(w.ports, number) {
			continue
		}
		if err := g.openPort(number); err != nil {
			return err
		}
		if err := g.commands.addRoute(routeTo(r.Prefix, number)); err != nil {
			return err
		}
		w.ports = append(w.ports, number)
	}
	return nil
}

// forget takes the way to an address back, now or when nothing goes there any more.
func (g *gateway) forget(addr netip.Addr) {
	addr = addr.Unmap()
	g.mu.Lock()
	defer g.mu.Unlock()
	to := netip.PrefixFrom(addr, addr.BitLen())
	if w := g.reached[to]; w != nil && !g.closed {
		w.forgotten = true
		g.giveUp(to, w)
	}
}

// giveUp removes a way that is forgotten and carries nothing. The caller holds mu.
func (g *gateway) giveUp(to netip.Prefix, w *way) {
	if !w.forgotten || w.live > 0 || g.closed {
		return
	}
	delete(g.reached, to)
	if w.every {
		_ = g.commands.removeRoute(routeTo(to, 0))
	}
	for _, number := range w.ports {
		_ = g.commands.removeRoute(routeTo(to, number))
	}
}

// routeTo is the route of the commands to a port, or to every port with 0.
func routeTo(to netip.Prefix, number uint16) route {
	return route{table: portTables + uint32(number), to: to, via: wayThere[familyIndex(to)], link: wayIndex}
}

// familyIndex is where that of a prefix stands in wayHere and so on.
func familyIndex(p netip.Prefix) int {
	if p.Addr().Is6() {
		return 1
	}
	return 0
}

// unmapped is the prefix of IPv4 that one of mapped addresses means.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}
