package network

import (
	"container/list"
	"errors"
	"net/netip"
	"slices"
	"sync"
)

const (
	addressesKept = 4096 // of those that were handed out
	namesKept     = 32   // for each of them
)

// ErrTooMany is what a mechanism that has no room for another address fails with.
var ErrTooMany = errors.New("the session knows too many addresses already")

// reached remembers which addresses were handed out, for which names. What was not
// used for the longest time is forgotten first.
type reached struct {
	tell  sync.Mutex // orders calls of paths and ends; taken before mu
	paths []func(Reach) error
	ends  []func(netip.Addr)

	mu    sync.Mutex
	of    map[netip.Addr]*list.Element
	order list.List          // of *handed, the last used first
	held  map[netip.Addr]int // relays to addresses
	hosts sync.Once          // the host's file was read
}

type handed struct {
	addr  netip.Addr
	names []named // the latest first
	ports portSet // of all of them, and of those that were forgotten
}

// named is a name of an address, with what the rules say of both.
type named struct {
	name  string
	grant grant
}

func (h *handed) reach() Reach {
	return Reach{Prefix: netip.PrefixFrom(h.addr, h.addr.BitLen()), Ports: h.ports.list()}
}

// OnReach has f called with each address that is handed out from now on, and at
// once with each that was before, before anybody is told of it: the mechanism makes
// its way there. When f fails, the address is not handed out. f is called again when
// an address gets more ports, or was forgotten in between; it must not use the gate.
func (g *Gate) OnReach(f func(Reach) error) {
	g.readHosts()
	r := &g.reached
	r.tell.Lock()
	defer r.tell.Unlock()
	r.paths = append(r.paths, f)
	for _, h := range r.all() {
		if f(h.reach()) != nil {
			r.forget(h.addr)
		}
	}
}

// OnForget has f called with each address that is forgotten from now on, which OnReach
// has told of or has just failed to: the mechanism takes its way there back. It is not
// called for an address that has a rule of its own, to which the way remains. Calls of
// both come one after the other; f must not use the gate.
func (g *Gate) OnForget(f func(netip.Addr)) {
	r := &g.reached
	r.tell.Lock()
	defer r.tell.Unlock()
	r.ends = append(r.ends, func(addr netip.Addr) {
		if _, ruled := g.cfg.Rules.networks.of[netip.PrefixFrom(addr, addr.BitLen())]; !ruled {
			f(addr)
		}
	})
}

func (r *reached) all() (all []handed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for e := r.order.Back(); e != nil; e = e.Prev() {
		all = append(all, *e.Value.(*handed))
	}
	return all
}

// forget forgets an address, and tells the mechanism. It is called with tell.
func (r *reached) forget(addr netip.Addr) {
	r.mu.Lock()
	if e, ok := r.of[addr]; ok {
		r.order.Remove(e)
		delete(r.of, addr)
	}
	r.mu.Unlock()
	for _, f := range r.ends {
		f(addr)
	}
}

// names returns those for which an address was handed out, the latest first.
func (r *reached) names(addr netip.Addr) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.of[addr]
	if !ok {
		return nil
	}
	r.order.MoveToFront(e)
	for _, n := range e.Value.(*handed).names {
		names = append(names, n.name)
	}
	return names
}

// hand makes an address reachable for a name, of which the rules say g. It fails when
// there is no way to it.
func (r *reached) hand(addr netip.Addr, name string, g grant) error {
	r.tell.Lock()
	defer r.tell.Unlock()
	ports, known := r.ports(addr)
	if more := g.narrow(); !known || !ports.contains(more) {
		ports = ports.with(more)
		for _, f := range r.paths {
			if err := f((&handed{addr: addr, ports: ports}).reach()); err != nil {
				if !known {
					r.forget(addr) // others may have made their way
				}
				return err
			}
		}
	}
	r.note(addr, named{name, g}, ports)
	for {
		oldest, full := r.tooMany()
		if !full {
			return nil
		}
		r.forget(oldest)
	}
}

func (r *reached) ports(addr netip.Addr) (portSet, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.of[addr]; ok {
		return e.Value.(*handed).ports, true
	}
	return portSet{}, false
}

// tooMany returns the address to forget, when there are more than are kept.
func (r *reached) tooMany() (oldest netip.Addr, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.of) <= addressesKept {
		return oldest, false
	}
	for e := r.order.Back(); e != nil; e = e.Prev() {
		if oldest = e.Value.(*handed).addr; r.held[oldest] == 0 {
			break
		}
	}
	return oldest, true
}

// hold counts relays to an address, whose way they need until they end. There are
// fewer than addresses that are kept.
func (r *reached) hold(addr netip.Addr, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = map[netip.Addr]int{}
	}
	if r.held[addr] += more; r.held[addr] == 0 {
		delete(r.held, addr)
	}
}

func (r *reached) note(addr netip.Addr, n named, ports portSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[netip.Addr]*list.Element{}
	}
	e, ok := r.of[addr]
	if !ok {
		e = r.order.PushFront(&handed{addr: addr})
		r.of[addr] = e
	}
	r.order.MoveToFront(e)
	h := e.Value.(*handed)
	h.ports = ports
	h.names = slices.DeleteFunc(h.names, func(old named) bool { return old.name == n.name })
	h.names = slices.Insert(h.names, 0, n)
	if len(h.names) > namesKept {
		i := h.spare()
		h.names = slices.Delete(h.names, i, i+1)
	}
}

// spare returns which name to forget: the oldest that a later one permits as much as,
// or else the oldest.
func (h *handed) spare() int {
	for i := len(h.names) - 1; i > 0; i-- {
		if slices.ContainsFunc(h.names[:i], func(later named) bool { return later.grant.same(h.names[i].grant) }) {
			return i
		}
	}
	return len(h.names) - 1
}
