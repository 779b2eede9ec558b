package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// A reply is what a question for addresses is answered with.
type reply struct {
	code    dnsmessage.RCode
	addrs   []netip.Addr
	ttl     uint32
	blocked bool // by the rules
}

// reply looks an allowed name up, and hands out those of its addresses that may be
// reached.
func (g *Gate) reply(ctx context.Context, q asked, find finder) (r reply, ok bool) {
	f, ok := find(q)
	if !ok {
		return r, false
	}
	if f.err != nil {
		r.code, ok = g.failure(ctx, q, f.err, find)
		return r, ok
	}
	r.ttl = uint32(max(1, time.Until(f.until)/time.Second))
	var refused []string
	for _, addr := range f.addrs {
		why, ok := g.handOut(q.name, addr)
		if ok {
			r.addrs = append(r.addrs, addr)
		} else if why != "" {
			refused = append(refused, why)
		}
	}
	if len(refused) > 0 && len(r.addrs) == 0 {
		g.refuseName(q.name, refused[0], refused[0])
		return blockedAddresses, true
	}
	return r, true
}

// handOut makes an address reachable for a name. why is empty where the machine,
// and no rule, is in the way.
func (g *Gate) handOut(name string, addr netip.Addr) (why string, ok bool) {
	s, isSpecial := specialOf(addr)
	byAddress := g.cfg.Rules.address(addr, s.bits)
	if isSpecial && byAddress.ports.empty() {
		why = name + " resolves to the " + s.kind + " address " + addr.String() + "; "
		if s.bits >= never {
			return why + noLoopback, false
		}
		return why + "name it in --network to permit it", false
	}
	byName := g.cfg.Rules.name(name)
	byName.denials = slices.Concat(byName.denials, byAddress.denials)
	ports := byName.narrow()
	if isSpecial && !ports.empty() {
		// Only what rules have for the address itself. Of those ports the name's own
		// rules matter no more, but for their denials.
		byName.ports = byAddress.ports
		ports = byName.narrow()
	}
	if ports.empty() {
		return name + " resolves to " + addr.String() + ", which is " + deniedBy(byName.denials[len(byName.denials)-1].rule), false
	}
	if !g.routed(addr) {
		return "", false
	}
	switch err := g.reached.hand(addr, name, byName); {
	case err == nil:
		return "", true
	case errors.Is(err, ErrTooMany):
		return ErrTooMany.Error(), false
	case addr.Is4():
		return "the session has no way to " + addr.String() + ": " + printable(err.Error()), false
	}
	return "", false // a session without IPv6 takes what there is of IPv4
}

// failure says how to answer for a name whose addresses of one family there are not.
// A name is missing only when it has none of the other family either.
func (g *Gate) failure(ctx context.Context, q asked, err error, find finder) (code dnsmessage.RCode, ok bool) {
	if errors.Is(err, errNotFound) {
		other := asked{"ip4", q.name}
		if q == other {
			other.network = "ip6"
		}
		f, ok := find(other)
		if errors.Is(f.err, errNotFound) {
			return dnsmessage.RCodeNameError, ok
		}
		return dnsmessage.RCodeSuccess, ok
	}
	why := "the server's own resolver does not answer: " + printable(err.Error())
	switch {
	case errors.Is(err, errBusy):
		why = err.Error() + "; try again"
	case ctx.Err() != nil || g.ctx.Err() != nil:
		return dnsmessage.RCodeServerFailure, true
	}
	g.refuseName(q.name, why, why)
	return dnsmessage.RCodeServerFailure, true
}

// routed reports whether the host has a way to an address. Connecting a datagram
// socket sends nothing.
func routed(addr netip.Addr) bool {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 9)))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
