//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A Confiner holds one policy in the form the kernel takes. It is safe for
// concurrent use.
type Confiner struct {
	policy   policy.Policy
	kernel   features
	ruleset  int // Landlock's, for commands; -1 without Landlock
	outer    int // Landlock's, for watchers, shared by all; -1 where signals are not scoped
	filter   []unix.SockFilter
	writes   []string // the writable roots, links resolved
	ports    listeners
	names    abstractNames
	sockets  socketLocks
	ipc      ipcObjects
	spares   *spares
	seats    seats
	gate     gate          // nil for none
	lookups  *lookups      // what commands get for UDP sockets; nil where the network is open
	waits    chan struct{} // the connects that wait for the other side
	pending  chan struct{} // those that no command waits for
	receives chan struct{} // the receives of datagrams that wait
	given    givenTerminals
	nowhere  atomic.Bool  // some socket waits for its port, see bindNowhere
	held     atomic.Int32 // the listening sockets that the broker holds too
	status   func() Status
	proven   atomic.Bool // the signal scope holds

	mu      sync.Mutex
	domains map[*Domain]bool // started and not yet finished
	closed  bool
}

// New prepares to confine commands by p. It fails where the kernel offers
// neither Landlock nor seccomp filters; what else is missing is in Status.
func New(p policy.Policy, o Options) (*Confiner, error) { return newConfiner(p, o, missing{}) }

// newConfiner is New without some features of the kernel.
func newConfiner(p policy.Policy, o Options, without missing) (*Confiner, error) {
	if p.Places == nil {
		p = p.Pin()
		defer p.Close()
	}
	if err := p.Short(); err != nil {
		return nil, err
	}
	c := &Confiner{policy: p, ruleset: -1, outer: -1, domains: map[*Domain]bool{}, writes: p.Written(),
		seats: newSeats(), waits: make(chan struct{}, waitingConnects), pending: make(chan struct{}, pendingConnects),
		receives: make(chan struct{}, waitingReceives)}
	c.kernel = probe().without(without)
	c.status = sync.OnceValue(c.selfTest)
	if c.kernel.Landlock == 0 {
		return nil, errors.New("this kernel offers no Landlock")
	}
	if err := prepareProcess(); err != nil {
		return nil, err
	}
	var err error
	if c.ruleset, err = policyRuleset(p, c.kernel.Landlock); err != nil {
		return nil, err
	}
	if c.kernel.scoped() {
		if c.outer, err = outer(); err != nil {
			unix.Close(c.ruleset)
			return nil, err
		}
	}
	c.pass(o.Gate)
	c.spares = newSpares(o.Spare, c.newDomain)
	return c, nil
}

// pass makes the filter, which depends on whether there is a gate.
func (c *Confiner) pass(g gate) {
	o := c.kernel.filterOptions(c.policy.Network)
	if o.datagrams {
		if v, ok := g.(*network.Gate); !ok || v != nil {
			c.gate = g
		}
		c.lookups = newLookups(c.gate, c.seats)
	}
	c.filter = buildFilter(o)
}

// Start runs start, which starts one process and returns its id, on a confined
// thread: the process and its descendants are the domain. start runs restricted
// as the process will be, so it should do no more than start it; in particular the
// child must not need the broker (namespaces, owners, signals to others) before it
// executes its program. When start fails, so does Start.
func (c *Confiner) Start(start func() (pid int, err error)) (*Domain, error) {
	if err := proc.Room(); err != nil {
		return nil, err
	}
	d, err := c.spares.take()
	if err != nil {
		return nil, fmt.Errorf("cannot confine a thread: %w", err)
	}
	if err := c.register(d); err != nil {
		d.discard()
		return nil, err
	}
	err = d.run(start)
	c.spares.refill()
	if err != nil {
		return nil, err
	}
	if d.watcher != nil {
		go d.guard()
	}
	if d.broker == nil {
		go d.poll()
	}
	return d, nil
}

// proveScope has the first watcher show that its kind reaches no process outside.
func (c *Confiner) proveScope(w *watcher) error {
	if c.proven.Load() {
		return nil
	}
	err := w.prove()
	c.proven.Store(err == nil)
	return err
}

// Fallen is false: a Confiner guards nothing in the workspace.
func (c *Confiner) Fallen() bool { return false }

func (c *Confiner) register(d *Domain) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errors.New("the confiner is closed")
	}
	c.domains[d] = true
	return nil
}

func (c *Confiner) forget(d *Domain) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.domains, d)
}

// live returns the domains of the session that have processes.
func (c *Confiner) live() []*Domain {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*Domain, 0, len(c.domains))
	for d := range c.domains {
		out = append(out, d)
	}
	return out
}

// Close kills every process of every domain and gives back what New took.
// Start fails from now on.
func (c *Confiner) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.spares.close()
	var errs []error
	for _, d := range c.live() {
		errs = append(errs, d.Kill())
	}
	if c.lookups != nil {
		c.lookups.close()
	}
	c.ipc.close()
	unix.Close(c.ruleset)
	return errors.Join(errs...)
}
