package process

import (
	"errors"
	"fmt"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/containers"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
	"github.com/perstack-ai/perstack-base/sandbox/process/quota"
)

// Kept tells which limits there are and what keeps them. What confines commands is
// tried out for that, if it was not before.
func (c *Commands) Kept() []quota.Kept {
	if c.fleet == nil {
		_ = c.confinement.ready()
	}
	return c.rules.Kept()
}

// QuotaHeld returns an error when the mode is Strict and a limit that was asked for is
// not kept exactly. Without such limits it tries nothing.
func (c *Commands) QuotaHeld() error {
	if c.cfg.Sandbox != Strict || c.cfg.Quota == (quota.Limits{}) {
		return nil
	}
	_ = c.Kept()
	return c.rules.Held()
}

// NotKept are the limits that were asked for and that nothing keeps, in any
// mechanism.
func (c *Commands) NotKept() []quota.Kept { return c.rules.NotKept() }

// newRules are what bounds the sessions.
func (c *Commands) newRules() *quota.Rules {
	return &quota.Rules{
		Limits: c.cfg.Quota, Strict: c.cfg.Sandbox == Strict, Off: c.cfg.Sandbox == Off, Default: c.limits.Processes,
		ByEngine: c.cfg.inside != nil || c.cfg.Container.Image != "", Inside: c.cfg.inside != nil, Spare: containers.RunnerThreads,
		Namespaces: func() bool { return c.confinement.chose(Namespaces) },
	}
}

// bounded is a shell as its ration sees it.
type bounded struct{ s *Shell }

// Trees are those of commands that run, or have left something running.
func (b bounded) Trees() (all []tree.Tree, any bool) {
	s := b.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for j := range s.running {
		if j.started.Load() {
			all = append(all, j.tree)
		}
	}
	for _, j := range s.left {
		all = append(all, j.tree)
	}
	return all, len(s.running)+len(s.left) > 0
}

// OthersRun reports whether a command runs besides the one that is about to. Where none
// does, that one must be able to end what earlier ones left running.
func (b bounded) OthersRun() bool {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	return len(b.s.running) > 1
}

// Spaces, Confined and Mark are the session's.
func (b bounded) Spaces() []confine.Space { return b.s.session.spaces() }
func (b bounded) Confined() bool          { return b.s.session.confined() }
func (b bounded) Mark() string            { return b.s.session.mark() }

// reasons tell by which limit a command was ended, or something refused to it, a
// sentence each.
func (s *Shell) reasons(j *job, res *Result) []string {
	const killed = 128 + 9 // as shells tell
	text := func(o capture.Output) func() string {
		return func() string { return capture.ValidText(o.Head) + capture.ValidText(o.Tail) }
	}
	return s.ration.Reasons(s.c.rules, quota.Ended{
		Before: j.account, Began: j.began, Tree: j.tree, Killed: !res.TimedOut && !res.Cancelled && res.ExitCode == killed,
		Failed: res.ExitCode != 0, Stdout: text(res.Stdout), Stderr: text(res.Stderr),
	})
}

// spaces are what the session's commands live in.
func (s *session) spaces() (all []confine.Space) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add := func(c *cage) {
		if c == nil {
			return
		}
		if i := c.Jail.Space(); i != nil {
			all = append(all, i)
		}
	}
	add(s.cage)
	for _, c := range s.wider {
		add(c)
	}
	for _, c := range s.retired {
		add(c)
	}
	return all
}

// notBounded is why a command cannot be bounded.
func notBounded(err error) error {
	var unkept *quota.NotKeptError
	if errors.As(err, &unkept) {
		return fmt.Errorf("%w: %w", ErrUnconfined, err)
	}
	return noRoom(err)
}
