package network

import "slices"

// A portSet is some ports or all of them. Sets are values: with makes another one.
type portSet struct {
	all  bool
	some []uint16 // in order
}

var (
	everyPort    = portSet{all: true}
	defaultPorts = portSet{some: []uint16{80, 443}}
)

func (p portSet) empty() bool { return !p.all && len(p.some) == 0 }

func (p portSet) has(port uint16) bool {
	_, found := slices.BinarySearch(p.some, port)
	return p.all || found
}

func (p portSet) contains(q portSet) bool {
	if p.all || q.all {
		return p.all
	}
	return !slices.ContainsFunc(q.some, func(port uint16) bool { return !p.has(port) })
}

func (p portSet) with(q portSet) portSet {
	if q.empty() {
		return p
	}
	if p.empty() {
		return q
	}
	some := slices.Concat(p.some, q.some)
	slices.Sort(some)
	return portSet{all: p.all || q.all, some: slices.Compact(some)}
}

// list is how a Reach has the set.
func (p portSet) list() []uint16 {
	if p.all {
		return nil
	}
	return slices.Clone(p.some)
}
