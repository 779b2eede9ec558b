package skillrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// A snapshot is the result of one scan; it never changes.
type snapshot struct {
	skills  []*Skill // by name
	byName  map[string]*Skill
	diags   []Diagnostic       // what was not loaded, and why
	parsed  map[string]*parsed // by root and directory, for the next scan
	listed  map[string]listing // by real directory, for the next scan
	started time.Time
}

// A scan looks through all roots once.
type scan struct {
	ctx    context.Context
	repo   *Repo
	old    *snapshot // the one before
	snap   *snapshot
	owners map[string]*Skill // by real directory: a skill that two roots reach counts once
	roots  map[string]bool   // by real directory
}

func newScan(ctx context.Context, r *Repo, old *snapshot) *scan {
	return &scan{
		ctx: ctx, repo: r, old: old, owners: map[string]*Skill{}, roots: map[string]bool{},
		snap: &snapshot{byName: map[string]*Skill{}, parsed: map[string]*parsed{}, listed: map[string]listing{}, started: time.Now()},
	}
}

func (r *Repo) scan(ctx context.Context, old *snapshot) (*snapshot, error) {
	sc := newScan(ctx, r, old)
	for _, root := range r.roots {
		if err := sc.root(root); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(sc.snap.skills, func(a, b *Skill) int { return strings.Compare(a.Name, b.Name) })
	return sc.snap, nil
}

func (sc *scan) diagnose(dir, format string, args ...any) {
	sc.snap.diags = append(sc.snap.diags, Diagnostic{Path: dir, Message: fmt.Sprintf(format, args...), Error: true})
}

// root searches one root. Only the end of the context is an error.
func (sc *scan) root(root Root) error {
	t, start, err := root.open()
	if err != nil {
		sc.diagnose(root.Dir, "%v", err)
		return nil
	}
	real, info, err := t.resolve(".", start)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if root.Trusted { // the user named this one
			sc.diagnose(root.Dir, "the skills directory does not exist")
		}
		return nil
	case err != nil:
		sc.diagnose(root.Dir, "%v", plainError("the skills directory cannot be searched", err))
		return nil
	case !info.IsDir():
		sc.diagnose(root.Dir, "the skills directory is not a directory")
		return nil
	case sc.roots[t.abs(real)]:
		return nil
	}
	sc.roots[t.abs(real)] = true
	s := search{scan: sc, tree: t.narrowed(real), root: root, seen: map[string]bool{real: true}}
	s.startLoading()
	_ = s.dir(root.Dir, real, 0) // fails only with the context, as the next call does
	if err := s.finishLoading(); err != nil {
		return err
	}
	slices.SortFunc(s.found, func(a, b *Skill) int { return strings.Compare(a.Dir, b.Dir) })
	for _, skill := range s.found {
		sc.add(skill)
	}
	return nil
}

// add gives the skill its name, unless an earlier one has it.
func (sc *scan) add(s *Skill) {
	if sc.owners[s.RealDir] != nil {
		return
	}
	if first := sc.snap.byName[s.Name]; first != nil {
		sc.diagnose(s.Dir, "the skill %q is hidden by %s, which was found first", s.Name, first.Dir)
		return
	}
	sc.owners[s.RealDir] = s
	sc.snap.byName[s.Name] = s
	sc.snap.skills = append(sc.snap.skills, s)
}
