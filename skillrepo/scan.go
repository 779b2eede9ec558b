package skillrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Bounds of the search below one root.
const (
	maxSearchDepth = 4
	maxSearchDirs  = 10_000
)

// notSearched are directories in which no skill is looked for.
var notSearched = map[string]bool{
	".git": true, ".hg": true, ".svn": true, "node_modules": true, "target": true, "__pycache__": true,
	".venv": true, "venv": true, "dist": true, "build": true,
}

// A snapshot is the result of one scan; it never changes.
type snapshot struct {
	skills  []*Skill // by name
	byName  map[string]*Skill
	diags   []Diagnostic       // what was not loaded, and why
	parsed  map[string]parsed  // by root and directory, for the next scan
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
		snap: &snapshot{byName: map[string]*Skill{}, parsed: map[string]parsed{}, listed: map[string]listing{}, started: time.Now()},
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
		if root.Trusted { // somebody asked for this one by name
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
	s := search{scan: sc, tree: t, root: root, seen: map[string]bool{real: true}}
	if err := s.dir(root.Dir, real, 0); err != nil {
		return err
	}
	slices.SortFunc(s.found, func(a, b *Skill) int { return strings.Compare(a.Dir, b.Dir) })
	for _, skill := range s.found {
		sc.add(skill)
	}
	return nil
}

// add gives the skill its name, unless an earlier one bears it.
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

// A search goes through the directories below one root.
type search struct {
	*scan
	tree  tree
	root  Root
	seen  map[string]bool // real directories, in the tree
	found []*Skill
	cut   bool
}

// dir searches one directory: named as it was found, and link-free in the tree.
func (s *search) dir(dir, real string, depth int) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	entries := s.list(dir, real)
	if e := skillFile(entries); e != nil {
		s.load(dir, real, e)
	}
	if depth == maxSearchDepth {
		return nil
	}
	for _, e := range entries {
		if err := s.child(dir, real, e, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// A listing is what matters of a directory while it does not change.
type listing struct {
	sig     signature
	read    time.Time
	entries []fs.DirEntry // directories, links and spellings of SKILL.md
}

const maxListed = 1000 // entries of a listing worth remembering

// list reads a directory, or remembers it if nothing changed.
func (s *search) list(dir, real string) []fs.DirEntry {
	key, now := s.tree.abs(real), listing{read: time.Now()}
	info, err := fs.Lstat(s.tree.fsys, real)
	if err == nil {
		now.sig = signatureOf(info)
		if old, ok := s.old.listed[key]; ok && old.sig == now.sig && old.sig.settled(old.read) {
			s.snap.listed[key] = old
			return old.entries
		}
	}
	all, cut, err := s.tree.readDir(real)
	if err != nil {
		s.diagnose(dir, "%v", plainError("the directory cannot be searched", err))
	}
	if cut {
		s.diagnose(dir, "the directory has more than %d entries; some were not looked at", maxEntries)
	}
	for _, e := range all {
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 || strings.EqualFold(e.Name(), "SKILL.md") {
			now.entries = append(now.entries, e)
		}
	}
	if err == nil && !cut && len(now.entries) <= maxListed {
		s.snap.listed[key] = now
	}
	return now.entries
}

// child searches an entry if it is, or leads to, a directory not yet searched.
func (s *search) child(dir, real string, e fs.DirEntry, depth int) error {
	link := e.Type()&fs.ModeSymlink != 0
	if notSearched[e.Name()] || !e.IsDir() && !link || s.cut {
		return nil
	}
	at := dir + string(filepath.Separator) + e.Name()
	target := path.Join(real, e.Name())
	if link {
		to, info, err := s.tree.resolve(real, e.Name())
		switch {
		case errors.Is(err, ErrOutside):
			s.diagnose(at, "the link leads outside the tree that may be read and is not followed")
			return nil
		case err != nil || !info.IsDir():
			return nil // a link to a file, or to nothing, hides no skill
		}
		target = to
	}
	if s.seen[target] {
		return nil
	}
	if !fs.ValidPath(target) {
		s.diagnose(at, "the directory's name is not valid UTF-8 and it is not searched")
		return nil
	}
	if len(s.seen) >= maxSearchDirs {
		s.cut = true
		s.diagnose(s.root.Dir, "more than %d directories; the rest is not searched", maxSearchDirs)
		return nil
	}
	s.seen[target] = true
	return s.dir(at, target, depth)
}

// skillFile picks SKILL.md, else skill.md, else another spelling, nil without any.
func skillFile(entries []fs.DirEntry) (best fs.DirEntry) {
	for _, e := range entries {
		switch name := e.Name(); {
		case name == "SKILL.md":
			return e
		case name == "skill.md", best == nil && strings.EqualFold(name, "SKILL.md"):
			best = e
		}
	}
	return best
}

// load reads the skill in a directory, or remembers it if nothing changed.
func (s *search) load(dir, real string, e fs.DirEntry) {
	file := e.Name()
	target, info, err := path.Join(real, file), fs.FileInfo(nil), error(nil)
	if e.Type()&fs.ModeSymlink != 0 {
		target, info, err = s.tree.resolve(real, file)
		if err == nil && !within(real, target) {
			err = ErrOutside
		}
	} else {
		info, err = fs.Lstat(s.tree.fsys, target)
	}
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	if err != nil {
		s.diagnose(dir, "%v", plainError(file+" cannot be read", err))
		return
	}
	key := s.root.Dir + "\x00" + dir
	known, ok := s.old.parsed[key]
	if !ok || !known.skill.loadedFrom(signatureOf(info), real, file, target) {
		skill := &Skill{
			Dir: dir, RealDir: s.tree.abs(real), Root: s.root.Dir, Trusted: s.root.Trusted,
			tree: s.tree, dirName: filepath.Base(dir), real: real, file: file, target: target, hashes: &s.repo.hashes,
		}
		known = parsed{skill, skill.load()}
	}
	s.snap.parsed[key] = known
	if known.err != nil {
		s.diagnose(dir, "%v", known.err)
		return
	}
	s.found = append(s.found, known.skill)
}

// parsed is what came of reading one SKILL.md.
type parsed struct {
	skill *Skill
	err   error // why it is not a skill
}
