package skill

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
	"github.com/perstack-ai/perstack-base/skillrepo"
)

// A guard is the hooks of one activated skill. They stay as they were activated,
// whatever becomes of the skill on disk: a command that edits or deletes the
// skill must not escape them. A nil *guard has no hooks.
type guard struct {
	hooks     []skillrepo.HookGroup
	page      *Page  // where they run: the skill's own directory, or a copy of it
	copy      string // in the run workspace, "" when they run in the skill's own directory
	state     string // of what the hooks depend on when they were activated
	announced bool   // that the skill has changed since; guarded by the session's mutex
}

// newGuard registers the hooks of a skill that is being activated, nil without any.
// Where commands could change the skill, command hooks get a copy of it.
func (s *Session) newGuard(ctx context.Context, sk *skillrepo.Skill, m *skillrepo.Manifest, page *Page) (*guard, error) {
	if !sk.Trusted || s.stateless {
		return nil, nil
	}
	g := &guard{hooks: s.registrable(sk.Hooks)}
	if len(g.hooks) == 0 {
		return nil, nil
	}
	there := *page
	there.Dir, g.page = sk.RealDir, &there
	exposed := s.engine.exposed(sk.RealDir)
	g.state = stateOf(sk, m, exposed)
	if !exposed || !slices.ContainsFunc(g.hooks, hasCommand) {
		return g, nil
	}
	w, err := s.workspace(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkSize(sk.Name, &m.Listing); err != nil {
		return nil, err
	}
	if s.engine.exposed(w.dir.Root()) {
		return nil, errorf(fault.Unavailable, "the hooks of skill %s cannot be kept out of reach of commands: --allow-write lets them write %s", sk.Name, w.dir.Root())
	}
	g.copy = hooksDir + "/" + sk.Name + "-" + randomHex(4)
	there.Dir = w.abs(g.copy)
	ctx, span := begin(ctx, spanSkill)
	span.holds(&m.Listing)
	err = w.copyTree(ctx, sk, &m.Listing, g.copy, 0o600)
	span.counted(err)
	if err != nil {
		g.dismiss(s)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errorf(fault.Unavailable, "skill %s cannot be copied for its hooks: %v", sk.Name, bare(err))
	}
	return g, nil
}

// dismiss removes what a guard had for itself.
func (g *guard) dismiss(s *Session) {
	if g == nil || g.copy == "" {
		return
	}
	if w, err := s.workspace(context.Background()); err == nil {
		_ = w.dir.Remove(g.copy)
	}
}

func hasCommand(g skillrepo.HookGroup) bool {
	return slices.ContainsFunc(g.Hooks, func(h skillrepo.Hook) bool { return h.Type == "command" })
}

// registrable are the hooks that may watch: under --read-only no commands.
func (s *Session) registrable(groups []skillrepo.HookGroup) []skillrepo.HookGroup {
	if !s.engine.ReadOnly {
		return groups
	}
	var kept []skillrepo.HookGroup
	for _, g := range groups {
		g.Hooks = slices.DeleteFunc(slices.Clone(g.Hooks), func(h skillrepo.Hook) bool { return h.Type == "command" })
		if len(g.Hooks) > 0 {
			kept = append(kept, g)
		}
	}
	return kept
}

// exposed reports whether commands can write the directory dir, which has no links.
func (e *Engine) exposed(dir string) bool {
	if scratch.Below(dir, e.Files.Root()) {
		return true
	}
	return slices.ContainsFunc(e.AllowWrite, func(root string) bool {
		if scratch.Below(dir, filepath.Clean(root)) {
			return true
		}
		files, _, err := files.OpenBelow(root, dir) // root may be spelled with links
		if err == nil {
			_ = files.Close()
		}
		return err == nil
	})
}

// stateOf is what a change of the skill is seen by. Where commands can change it,
// every file counts; elsewhere only the user and the hooks themselves can, and
// these may keep files of their own in the skill.
func stateOf(sk *skillrepo.Skill, m *skillrepo.Manifest, exposed bool) string {
	if exposed {
		return m.Digest
	}
	return string(sk.Frontmatter)
}

// notice says once, to the log and to the model, that a skill whose hooks are in
// force is no longer what was activated; "" otherwise.
func (s *Session) notice(ctx context.Context, g *guard) string {
	s.mu.Lock()
	announced := g.announced
	s.mu.Unlock()
	if announced || !s.changed(ctx, g) {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.announced {
		return ""
	}
	g.announced = true
	s.engine.Log.Warn("a skill changed after it was activated; its hooks stay in force as they were", "skill", g.page.Name)
	return strings.Join([]string{
		"Skill '" + g.page.Name + "' was changed or removed on disk after it was activated.",
		"Its hooks stay in force as they were then.",
		"Tell the user; loading or activating the skill again takes it as it is now.",
	}, " ")
}

// changed reports whether a skill is no longer the one that was activated. When
// the call has ended it need not be known: nothing will be done.
func (s *Session) changed(ctx context.Context, g *guard) bool {
	sk, ok := s.engine.Repo.Get(ctx, g.page.Name)
	if ctx.Err() != nil {
		return false
	}
	if !ok || !sk.Trusted {
		return true
	}
	exposed := s.engine.exposed(sk.RealDir)
	if !exposed {
		return stateOf(sk, nil, false) != g.state
	}
	m, err := sk.Manifest(ctx)
	return ctx.Err() == nil && (err != nil || stateOf(sk, m, true) != g.state)
}
