package process

import (
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
)

// cagedStarter starts a program where the kernel keeps it to the session's policy.
type cagedStarter struct{ cage *cage }

func (s cagedStarter) start(l launch) (tree, error) {
	if s.cage.jail.Space() != nil {
		return startIsolated(s.cage.jail, l)
	}
	t := &caged{group: newGroup(l, nil)}
	domain, err := s.cage.jail.Start(confine.Program{Begin: t.begin})
	if err != nil {
		return nil, err
	}
	t.domain = domain
	return t, nil
}

// A caged tree is a domain of the kernel's: nothing in it can leave it, and the
// end of the server is its end, without a watchdog.
type caged struct {
	*group
	domain confine.Running
}

// signal reaches every process of the domain, also those that left the group.
func (t *caged) signal(sig syscall.Signal) {
	if t.domain.Signal(sig) != nil {
		t.group.signal(sig)
	}
}

// killed is how long a killed domain may take to be gone: what is left then
// sleeps in the kernel and cannot be waited for.
const killed = 100 * time.Millisecond

func (t *caged) kill() {
	if t.domain.Kill() != nil {
		t.group.kill()
	}
	select {
	case <-t.gone():
	case <-time.After(killed):
	}
}

func (t *caged) alive() bool     { return t.domain.Populated() }
func (t *caged) survivors() bool { return t.domain.Alive() }

// gone is closed when nothing of the tree is left.
func (t *caged) gone() <-chan struct{} { return t.domain.Done() }

// refusals are what the kernel's broker has on record.
func (t *caged) refusals() []hints.Refusal { return t.domain.Refusals() }
