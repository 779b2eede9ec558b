package network

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// hostAddresses are those at which this machine is.
var hostAddresses = ownAddresses{routed: localRoute}

const (
	ownTime  = 3 * time.Second // for which what the machine said holds
	ownsKept = 4096            // addresses of which it said whether they are its own
)

// ownAddresses remembers what the machine says of its addresses for a moment: they
// change, and asking takes a while.
type ownAddresses struct {
	routed func(netip.Addr) bool // whether it takes an address for itself

	mu    sync.Mutex
	asked time.Time
	bits  map[netip.Addr]int // of its interfaces: the length of the prefix
	other map[netip.Addr]bool
}

// find reports whether an address is one of the machine's, and the length of the
// prefix by which a rule names it at least.
func (o *ownAddresses) find(addr netip.Addr) (bits int, ok bool) {
	bits, own, known := o.remembered(addr)
	if known {
		return bits, own
	}
	own = o.routed(addr)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.other) >= ownsKept {
		clear(o.other)
	}
	o.other[addr] = own
	return addr.BitLen(), own
}

func (o *ownAddresses) remembered(addr netip.Addr) (bits int, own, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bits == nil || time.Since(o.asked) > ownTime {
		o.ask()
	}
	if bits, own = o.bits[addr]; own {
		return bits, true, true
	}
	own, known = o.other[addr]
	return addr.BitLen(), own, known
}

func (o *ownAddresses) ask() {
	o.asked = time.Now()
	o.other = map[netip.Addr]bool{}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return // what was true lately is the best there is
	}
	o.bits = map[netip.Addr]int{}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				bits, _ := n.Mask.Size()
				o.bits[plain(addr)] = bits
			}
		}
	}
}
