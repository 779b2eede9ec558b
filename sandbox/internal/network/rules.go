package network

import (
	"net/netip"
	"slices"
	"strings"
)

// Rules are what commands may reach. The zero value permits nothing.
type Rules struct {
	list     []string
	ports    portSet // of all permissions together
	names    map[string]portSet
	below    map[string]portSet // of *.NAME
	networks table[portSet]

	deniedNames    map[string][]denial
	deniedBelow    map[string][]denial
	deniedNetworks table[[]denial]
}

// A denial is a rule that begins with "-".
type denial struct {
	rule  string
	ports portSet
}

// A Reach is a network or an address, with the ports on which it may be reached.
type Reach struct {
	Prefix netip.Prefix
	Ports  []uint16 // in order; nil for every port
}

// List returns the rules in the form that Parse reads.
func (r Rules) List() []string { return slices.Clone(r.list) }

// Empty reports whether there are no rules.
func (r Rules) Empty() bool { return len(r.list) == 0 }

// Networks returns what rules permit by address.
func (r Rules) Networks() []Reach {
	var all []Reach
	for prefix, ports := range r.networks.of {
		all = append(all, Reach{Prefix: prefix, Ports: ports.list()})
	}
	slices.SortFunc(all, func(a, b Reach) int { return a.Prefix.Compare(b.Prefix) })
	return all
}

// add puts one rule where the lookups below find it.
func (r *Rules) add(one rule) {
	r.list = append(r.list, one.text)
	names, denied := r.names, r.deniedNames
	if one.below {
		names, denied = r.below, r.deniedBelow
	}
	no := denial{rule: one.text, ports: one.ports}
	switch {
	case one.deny && one.name != "":
		denied[one.name] = append(denied[one.name], no)
	case one.deny:
		r.deniedNetworks.put(one.prefix, append(r.deniedNetworks.of[one.prefix], no))
	case one.name != "":
		names[one.name] = names[one.name].with(one.ports)
	default:
		r.networks.put(one.prefix, r.networks.of[one.prefix].with(one.ports))
	}
	if !one.deny {
		r.ports = r.ports.with(one.ports)
	}
}

// A grant is what the rules say of one name or of one address.
type grant struct {
	ports   portSet
	denials []denial
}

// deniedBy returns the rule that denies a port, "" where none does.
func (g grant) deniedBy(port uint16) string {
	for _, no := range g.denials {
		if no.ports.has(port) {
			return no.rule
		}
	}
	return ""
}

func (g grant) permits(port uint16) bool { return g.ports.has(port) && g.deniedBy(port) == "" }

// narrow leaves of the permitted ports those that no denial takes. With every port
// permitted, denials of single ports stay for deniedBy to tell.
func (g grant) narrow() portSet {
	left := portSet{all: g.ports.all}
	for _, port := range g.ports.some {
		if g.deniedBy(port) == "" {
			left.some = append(left.some, port)
		}
	}
	for _, no := range g.denials {
		if no.ports.all {
			left = portSet{}
		}
	}
	return left
}

// same reports whether two grants are of the same ports.
func (g grant) same(other grant) bool {
	equal := func(p, q portSet) bool { return p.all == q.all && slices.Equal(p.some, q.some) }
	return equal(g.ports, other.ports) &&
		slices.EqualFunc(g.denials, other.denials, func(a, b denial) bool { return equal(a.ports, b.ports) })
}

// name returns what the rules say of a name, which is in the form of canonicalName.
func (r Rules) name(name string) grant {
	g := grant{ports: r.names[name], denials: r.deniedNames[name]}
	for rest := name; ; {
		var dot bool
		if _, rest, dot = strings.Cut(rest, "."); !dot {
			return g
		}
		g.ports = g.ports.with(r.below[rest])
		if denied := r.deniedBelow[rest]; len(denied) > 0 {
			g.denials = slices.Concat(g.denials, denied)
		}
	}
}

// address returns what the rules say of an address, looking at permissions whose
// networks are no wider than bits: a rule for half of the internet names nobody's
// private network. Denials hold for an IPv4 address in its IPv6 forms too.
func (r Rules) address(addr netip.Addr, bits int) grant {
	var g grant
	r.networks.visit(addr, bits, func(ports portSet) { g.ports = g.ports.with(ports) })
	deny := func(denied []denial) { g.denials = append(g.denials, denied...) }
	r.deniedNetworks.visit(addr, 0, deny)
	if inner, _, ok := embedded(addr); ok {
		r.deniedNetworks.visit(inner, 0, deny)
	}
	return g
}

// A table finds the networks that an address lies in, in one step for each length of
// prefix that there is.
type table[T any] struct {
	of   map[netip.Prefix]T
	bits []int
}

func (t *table[T]) put(prefix netip.Prefix, value T) {
	t.of[prefix] = value
	if i, found := slices.BinarySearch(t.bits, prefix.Bits()); !found {
		t.bits = slices.Insert(t.bits, i, prefix.Bits())
	}
}

func (t *table[T]) visit(addr netip.Addr, least int, f func(T)) {
	for _, bits := range t.bits {
		if bits < least || bits > addr.BitLen() {
			continue
		}
		prefix, err := addr.Prefix(bits)
		if err != nil {
			continue
		}
		if value, ok := t.of[prefix]; ok {
			f(value)
		}
	}
}
