package tree

import (
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
)

// StartConfined starts a program where the kernel keeps it to the session's policy: on
// a thread which a jail restricts and then abandons, or in namespaces.
func StartConfined(in Jail, l Launch) (Tree, error) {
	l.confined = true
	if isolator, ok := in.(*confine.Isolator); ok {
		return startIsolated(isolator, l)
	}
	t := &caged{group: newGroup(l, nil)}
	domain, err := in.(*confine.Confiner).Start(t.begin)
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
	domain *confine.Domain
}

// Signal reaches every process of the domain, also those that left the group.
func (t *caged) Signal(sig syscall.Signal) {
	if t.domain.Signal(sig) != nil {
		t.group.Signal(sig)
	}
}

// killed is how long a killed domain may take to be gone: what is left then
// sleeps in the kernel and cannot be waited for.
const killed = 100 * time.Millisecond

func (t *caged) Kill() {
	if t.domain.Kill() != nil {
		t.group.Kill()
	}
	select {
	case <-t.Gone():
	case <-time.After(killed):
	}
}

func (t *caged) Alive() bool     { return t.domain.Populated() }
func (t *caged) Survivors() bool { return t.domain.Alive() }

// Gone is closed when nothing of the tree is left.
func (t *caged) Gone() <-chan struct{} { return t.domain.Done() }

// Refusals are what the kernel's broker has on record.
func (t *caged) Refusals() []hints.Refusal { return t.domain.Refusals() }
