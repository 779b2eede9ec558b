package skillrepo

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/signature"
)

// Options of a Repo; the zero value works.
type Options struct {
	// Log is told each diagnostic once, for as long as scans keep finding it.
	Log func(Diagnostic)
}

// A Repo knows the skills below some roots. Its methods may be called
// concurrently; a slow one never holds up those that only read the snapshot.
type Repo struct {
	roots  []Root
	opts   Options
	lock   chan struct{} // held while scanning
	snap   atomic.Pointer[snapshot]
	hashes signature.Memory
}

// Open looks through the roots, first ones first, for skills. Roots without Dir
// are passed over. Trouble with a root or a skill is a diagnostic; the only
// error is that of the context.
func Open(ctx context.Context, roots []Root, opts Options) (*Repo, error) {
	r := &Repo{opts: opts, lock: make(chan struct{}, 1)}
	r.snap.Store(&snapshot{})
	for _, root := range roots {
		if strings.TrimSpace(root.Dir) != "" {
			r.roots = append(r.roots, root.pinned())
		}
	}
	return r, r.refresh(ctx, time.Now())
}

// List is every known skill, by name, as the last scan found it.
func (r *Repo) List() []*Skill { return slices.Clone(r.snap.Load().skills) }

// Diagnostics is what the last scan did not load, and why.
func (r *Repo) Diagnostics() []Diagnostic { return slices.Clone(r.snap.Load().diags) }

// Get returns the skill of that exact name with the front matter it has now. When
// the snapshot lacks it, or its SKILL.md changed, the disk is scanned anew.
func (r *Repo) Get(ctx context.Context, name string) (*Skill, bool) {
	asked := time.Now()
	if s := r.snap.Load().byName[name]; s != nil && s.unchanged() {
		return s, true
	}
	if err := r.refresh(ctx, asked); err != nil {
		return nil, false
	}
	s := r.snap.Load().byName[name]
	return s, s != nil
}

// recent is how old a scan may be that still serves those who want a fresh one.
const recent = 250 * time.Millisecond

// Refresh looks at the disk anew, unless that was done within 250 ms.
func (r *Repo) Refresh(ctx context.Context) error { return r.refresh(ctx, time.Now().Add(-recent)) }

// refresh makes the snapshot one that was begun at the given time or later.
// Callers that wait for one another's scan share it.
func (r *Repo) refresh(ctx context.Context, notBefore time.Time) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case r.lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.lock }()
	old := r.snap.Load()
	if !old.started.Before(notBefore) {
		return nil
	}
	snap, err := r.scan(ctx, old)
	if err != nil {
		return err
	}
	r.snap.Store(snap)
	r.log(old, snap)
	return nil
}

// log tells the diagnostics that the older snapshot lacks.
func (r *Repo) log(old, snap *snapshot) {
	if r.opts.Log == nil {
		return
	}
	told := map[Diagnostic]bool{}
	for _, d := range old.everyDiagnostic() {
		told[d] = true
	}
	for _, d := range snap.everyDiagnostic() {
		if !told[d] {
			told[d] = true
			r.opts.Log(d)
		}
	}
}

func (s *snapshot) everyDiagnostic() []Diagnostic {
	all := slices.Clone(s.diags)
	for _, skill := range s.skills {
		all = append(all, skill.Diagnostics...)
	}
	return all
}
