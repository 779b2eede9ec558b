package proc

import (
	"maps"
	"slices"
	"sync"
)

// children are those that Start has begun, each until it is collected: the moment
// after, its id may be somebody else's.
var children = ledger{known: map[int]bool{}, starting: map[chan struct{}]bool{}, after: map[*func()]bool{}}

type ledger struct {
	mu       sync.Mutex
	known    map[int]bool
	starting map[chan struct{}]bool // one for each fork under way, closed when its child is known
	after    map[*func()]bool       // told when orphans were collected
}

// Start runs fork, which starts one child and returns its id. From the moment
// of its birth on the child belongs to the caller, who collects it with Wait.
func Start(fork func() (pid int, err error)) (pid int, err error) {
	done := make(chan struct{})
	children.mu.Lock()
	children.starting[done] = true
	children.mu.Unlock()
	defer func() {
		children.mu.Lock()
		defer children.mu.Unlock()
		if err == nil {
			children.known[pid] = true
		}
		delete(children.starting, done)
		close(done)
	}()
	return fork()
}

// Known reports whether pid is a child that Start has begun and nobody has
// collected. A process that was born before the call is judged rightly after
// Settle only.
func Known(pid int) bool {
	children.mu.Lock()
	defer children.mu.Unlock()
	return children.known[pid]
}

// Release gives the id of a child back that was collected by other means than
// Wait, which must be done at once, or that nobody is going to collect.
func Release(pid int) {
	children.mu.Lock()
	defer children.mu.Unlock()
	delete(children.known, pid)
}

// collect has get collect a child and gives its id back, in one step for Known.
func (l *ledger) collect(pid int, get func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, pid)
	return get()
}

// Settle returns when every child that exists now, and that is Start's, is known.
func Settle() {
	children.mu.Lock()
	starting := slices.Collect(maps.Keys(children.starting))
	children.mu.Unlock()
	for _, done := range starting {
		<-done
	}
}

// OnReap has f called whenever orphans were collected, until forget is called.
func OnReap(f func()) (forget func()) {
	children.mu.Lock()
	defer children.mu.Unlock()
	children.after[&f] = true
	return func() {
		children.mu.Lock()
		defer children.mu.Unlock()
		delete(children.after, &f)
	}
}

func (l *ledger) tell() {
	l.mu.Lock()
	after := slices.Collect(maps.Keys(l.after))
	l.mu.Unlock()
	for _, f := range after {
		(*f)()
	}
}
