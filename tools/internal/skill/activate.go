package skill

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/skillrepo"
)

// An activation is what a session remembers of a skill whose instructions it was sent.
type activation struct {
	digest string
	page   *Page // with the arguments
	guard  *guard
}

// Open renders a skill with arguments and activates it for the session: its gate
// is open and its hooks watch the calls that follow.
func (s *Session) Open(ctx context.Context, name string, args []string) (string, error) {
	sk, err := s.engine.find(ctx, name)
	if err != nil {
		return "", err
	}
	return s.open(ctx, sk, args)
}

func (s *Session) open(ctx context.Context, sk *skillrepo.Skill, args []string) (string, error) {
	m, err := sk.Manifest(ctx)
	if err != nil {
		return "", err
	}
	body, err := sk.Body()
	if err != nil {
		return "", err
	}
	page := s.page(sk, m.Files, body, args)
	text, err := page.Render(ctx, s.runner())
	if err != nil {
		return "", err
	}
	a := &activation{digest: m.Digest, page: page}
	if a.guard, err = s.newGuard(ctx, sk, m, page); err != nil {
		return "", err
	}
	s.mu.Lock()
	old := s.active[sk.Name]
	s.active[sk.Name] = a
	s.mu.Unlock()
	if old != nil {
		old.guard.dismiss(s)
	}
	return text, nil
}

// runner runs inline commands, nil where they stay text.
func (s *Session) runner() Runner {
	if s.engine.ReadOnly {
		return nil
	}
	return runner{s}
}

// activation returns what is remembered of a skill, nil when it is not active.
func (s *Session) activation(name string) *activation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[name]
}

// gateOpen reports whether the session has been sent the skill's instructions.
func (s *Session) gateOpen(name string) bool { return s.stateless || s.activation(name) != nil }

// Activate is Open in the words of activate_skill, with its check of paths: a
// skill that declares paths wants a file that it matches.
func (s *Session) Activate(ctx context.Context, name, arguments, file string) (string, error) {
	sk, err := s.engine.find(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", errorf(fault.NotFound, "Failed to activate skill '%s': Error: Skill '%s' not found in catalog", name, name)
	}
	if err := s.checkPath(sk, file); err != nil {
		return "", err
	}
	args := strings.Fields(arguments)
	if a := s.activation(name); a != nil && slices.Equal(a.page.Arguments, args) {
		if digest, err := sk.Digest(ctx); err == nil && digest == a.digest {
			return fmt.Sprintf("Skill '%s' is already activated in this session. Its instructions are already in context.", name), nil
		}
	}
	text, err := s.open(ctx, sk, args)
	if err != nil && ctx.Err() == nil {
		return "", errorf(fault.NotFound, "Failed to activate skill '%s': Error: %v", name, err)
	}
	return text, err
}

func (s *Session) checkPath(sk *skillrepo.Skill, file string) error {
	if len(sk.Paths) == 0 {
		return nil
	}
	paths := strings.Join(sk.Paths, ", ")
	if file == "" {
		return errorf(fault.BadInput, "Skill '%s' requires a matching context_path because it declares activation paths: %s", sk.Name, paths)
	}
	if !sk.MatchesPath(file, s.engine.Files.Root()) {
		return errorf(fault.BadInput, "Skill '%s' cannot be activated for context_path '%s'; expected one of: %s", sk.Name, file, paths)
	}
	return nil
}
