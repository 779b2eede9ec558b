//go:build amd64 || arm64

package threads

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/seccomp"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/selftest"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A Confiner holds one policy in the form the kernel takes. It is safe for
// concurrent use.
type Confiner struct {
	*broker.Session // what its commands share

	ruleset int // Landlock's, for commands; -1 without Landlock
	outer   int // Landlock's, for watchers, shared by all; -1 where signals are not scoped
	filter  []unix.SockFilter
	Spares  *Spares
	status  func() selftest.Status
	proven  atomic.Bool // the signal scope holds

	mu      sync.Mutex
	domains map[*Domain]bool // started and not yet finished
	closed  bool
}

// New prepares to confine commands by p. It fails where the kernel offers
// neither Landlock nor seccomp filters; what else is missing is in Status.
func New(p policy.Policy, o Options) (*Confiner, error) { return NewWithout(p, o, kernel.Missing{}) }

// NewWithout is New without some features of the kernel.
func NewWithout(p policy.Policy, o Options, without kernel.Missing) (*Confiner, error) {
	if p.Places == nil {
		p = p.Pin()
		defer p.Close()
	}
	if err := p.Short(); err != nil {
		return nil, err
	}
	c := &Confiner{ruleset: -1, outer: -1, domains: map[*Domain]bool{}}
	c.Session = broker.NewSession(p, kernel.Probe().Without(without), c.liveWatchers)
	c.status = sync.OnceValue(c.selfTest)
	if c.Kernel.Landlock == 0 {
		return nil, errors.New("this kernel offers no Landlock")
	}
	if err := kernel.PrepareProcess(); err != nil {
		return nil, err
	}
	var err error
	if c.ruleset, err = kernel.PolicyRuleset(p, c.Kernel.Landlock); err != nil {
		return nil, err
	}
	if c.Kernel.Scoped() {
		if c.outer, err = kernel.Outer(); err != nil {
			unix.Close(c.ruleset)
			return nil, err
		}
	}
	c.pass(o.Gate)
	c.Spares = newSpares(o.Spare, c.newDomain)
	return c, nil
}

// pass makes the filter, which depends on whether there is a gate.
func (c *Confiner) pass(g broker.Gate) {
	o := seccomp.OptionsFor(c.Kernel, c.Policy.Network)
	if o.Datagrams {
		c.ServeDatagrams(g)
	}
	c.filter = seccomp.Build(o)
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
	d, err := c.Spares.take()
	if err != nil {
		return nil, fmt.Errorf("cannot confine a thread: %w", err)
	}
	if err := c.register(d); err != nil {
		d.discard()
		return nil, err
	}
	err = d.run(start)
	c.Spares.refill()
	if err != nil {
		return nil, err
	}
	if d.Watcher != nil {
		go d.guard()
	}
	if d.broker == nil {
		go d.poll()
	}
	return d, nil
}

// proveScope has the first watcher show that its kind reaches no process outside.
func (c *Confiner) proveScope(w *Watcher) error {
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

// Live returns the domains of the session that have processes.
func (c *Confiner) Live() []*Domain {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*Domain, 0, len(c.domains))
	for d := range c.domains {
		out = append(out, d)
	}
	return out
}

// liveWatchers are those of the live domains.
func (c *Confiner) liveWatchers(started bool) (all []broker.Watcher) {
	for _, d := range c.Live() {
		if d.Watcher != nil && (d.started.Load() || !started) {
			all = append(all, d.Watcher)
		}
	}
	return all
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
	c.Spares.close()
	var errs []error
	for _, d := range c.Live() {
		errs = append(errs, d.Kill())
	}
	c.Session.Close()
	unix.Close(c.ruleset)
	return errors.Join(errs...)
}
