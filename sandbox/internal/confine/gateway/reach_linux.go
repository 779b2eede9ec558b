//go:build amd64 || arm64

package gateway

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// A Way is that of the commands to an address or network which the gate permits.
type Way struct {
	ports     []uint16
	every     bool // every port
	Live      int  // connections
	forgotten bool // it ends with the last of them
}

// reach makes a way to what the gate permits.
func (g *Gateway) reach(r network.Reach) error {
	if r.Prefix = unmapped(r.Prefix); r.Prefix.Addr().IsLoopback() { // it stays the session's own
		return nil
	}
	if familyIndex(r.Prefix) >= g.families {
		return errors.New("the session has no IPv6")
	}
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if g.closed { // the gate may have another one
		return nil
	}
	w := g.Reached[r.Prefix]
	if w == nil {
		if len(g.Reached) >= mostReached {
			return network.ErrTooMany
		}
		w = &Way{}
		g.Reached[r.Prefix] = w
	}
	w.forgotten = false
	switch {
	case w.every:
		return nil
	case r.Ports == nil:
		if err := g.openAny(); err != nil {
			return err
		}
		if err := g.commands.AddRoute(routeTo(r.Prefix, 0)); err != nil {
			return err
		}
		w.every = true
		return nil
	}
	for _, number := range r.Ports {
		if number == kernel.NamePort || slices.Contains(w.ports, number) {
			continue
		}
		if err := g.openPort(number); err != nil {
			return err
		}
		if err := g.commands.AddRoute(routeTo(r.Prefix, number)); err != nil {
			return err
		}
		w.ports = append(w.ports, number)
	}
	return nil
}

// forget takes the way to an address back, now or when nothing goes there any more.
func (g *Gateway) forget(addr netip.Addr) {
	addr = addr.Unmap()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	to := netip.PrefixFrom(addr, addr.BitLen())
	if w := g.Reached[to]; w != nil && !g.closed {
		w.forgotten = true
		g.GiveUp(to, w)
	}
}

// GiveUp removes a way that is forgotten and carries nothing. The caller holds mu.
func (g *Gateway) GiveUp(to netip.Prefix, w *Way) {
	if !w.forgotten || w.Live > 0 || g.closed {
		return
	}
	delete(g.Reached, to)
	if w.every {
		_ = g.commands.removeRoute(routeTo(to, 0))
	}
	for _, number := range w.ports {
		_ = g.commands.removeRoute(routeTo(to, number))
	}
}

// routeTo is the route of the commands to a port, or to every port with 0.
func routeTo(to netip.Prefix, number uint16) Route {
	return Route{Table: portTables + uint32(number), To: to, Via: WayThere[familyIndex(to)], Link: WayIndex}
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
