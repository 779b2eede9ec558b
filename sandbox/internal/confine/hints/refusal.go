package hints

import (
	"sort"
	"sync"
)

// A Refusal is something that a command tried and the sandbox did not let it do.
type Refusal struct {
	Command string // name of the program that tried
	What    string // what it tried, after the verb "to": "connect to 10.0.0.1:443"
	Permit  string // the server's flag that would permit it; empty: none does
	Count   int    // how often
}

// permitNetworkFlag is what permits refusals that concern the network.
const PermitNetworkFlag = "--network allow"

// permitRule is what permits an address where rules say which can be reached.
const permitRule = "it to --network in the arguments of perstack-base"

// permitElsewhere is what permits a server of the machine's loopback where rules say
// what can be reached.
const PermitElsewhere = "loopback"

// permitNamespacesFlag is what permits what a session has of its own in namespaces.
const PermitNamespacesFlag = "--sandbox isolate"

// maxRefusals bounds how many different refusals are remembered for a command.
const maxRefusals = 64

// A ledger counts refusals. It is safe for concurrent use.
type Ledger struct {
	mu     sync.Mutex
	counts map[Refusal]int // by a Refusal with Count 0
}

// Add counts a refusal.
func (l *Ledger) Add(r Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[Refusal]int{}
	}
	if _, known := l.counts[r]; known || len(l.counts) < maxRefusals {
		l.counts[r]++
	}
}

// list returns the refusals, most frequent first.
func (l *Ledger) List() []Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Refusal, 0, len(l.counts))
	for r, n := range l.counts {
		r.Count = n
		out = append(out, r)
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Count != out[j].Count {
			return out[i].Count > out[j].Count
		}
		return out[i].What+out[i].Command < out[j].What+out[j].Command
	})
	return out
}
