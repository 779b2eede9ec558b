package skillrepo

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/signature"
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

// A search goes through the directories below one root.
type search struct {
	*scan
	tree    tree
	root    Root
	seen    map[string]bool // real directories, in the tree
	pending []*parsed       // in the order of directories; loaded once the workers are done
	jobs    chan *parsed    // for the workers
	workers sync.WaitGroup
	found   []*Skill
	cut     bool
}

// dir searches one directory: named as it was found, and link-free in the tree.
func (s *search) dir(dir, real string, depth int) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	listed := s.list(dir, real)
	if e := skillFile(listed.entries); e != nil {
		s.skill(dir, real, e, listed.sig)
	}
	if depth == maxSearchDepth {
		return nil
	}
	for _, e := range listed.entries {
		if err := s.child(dir, real, e, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// A listing is what matters of a directory while it does not change.
type listing struct {
	sig     signature.Signature
	read    time.Time
	entries []fs.DirEntry // directories, links and spellings of SKILL.md
}

const maxListed = 1000 // entries of a listing worth remembering

// list reads a directory, or remembers it if nothing changed.
func (s *search) list(dir, real string) listing {
	key, now := s.tree.abs(real), listing{read: time.Now()}
	if old, ok := s.old.listed[key]; ok && old.sig.Settled(old.read) {
		if info, err := fs.Lstat(s.tree.fsys, real); err == nil && old.sig == signature.Of(info) {
			s.snap.listed[key] = old
			return old
		}
	}
	all, cut, sig, err := s.tree.readDirSigned(real)
	now.sig = sig
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
	return now
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

// skill notes the skill in a directory, remembered if nothing changed.
func (s *search) skill(dir, real string, e fs.DirEntry, dirSig signature.Signature) {
	file, target := e.Name(), path.Join(real, e.Name())
	var err error
	if e.Type()&fs.ModeSymlink != 0 {
		if target, _, err = s.tree.resolve(real, file); err == nil && !within(real, target) {
			err = ErrOutside
		}
	}
	if err != nil {
		s.diagnose(dir, "%v", plainError(file+" cannot be read", err))
		return
	}
	if known := s.old.parsed[s.key(dir)]; known != nil && known.skill.at(real, file, target) && known.skill.unchanged() {
		s.pending = append(s.pending, known)
		return
	}
	fresh := &parsed{skill: &Skill{
		Dir: dir, RealDir: s.tree.abs(real), Root: s.root.Dir, Trusted: s.root.Trusted,
		tree: s.tree, dirName: filepath.Base(dir), real: real, dirSig: dirSig, file: file, target: target, hashes: &s.repo.hashes,
	}}
	s.pending = append(s.pending, fresh)
	s.jobs <- fresh
}

func (s *search) key(dir string) string { return s.root.Dir + "\x00" + dir }

// A parsed is what came of reading one SKILL.md.
type parsed struct {
	skill *Skill
	err   error // why it is not a skill
}

// startLoading makes workers read what the search finds while it goes on.
func (s *search) startLoading() {
	s.jobs = make(chan *parsed, 64)
	for range runtime.GOMAXPROCS(0) {
		s.workers.Go(func() {
			for p := range s.jobs {
				if s.ctx.Err() == nil {
					p.err = p.skill.load()
				}
			}
		})
	}
}

// finishLoading waits for the workers and sorts the skills from the rest.
func (s *search) finishLoading() error {
	close(s.jobs)
	s.workers.Wait()
	if err := s.ctx.Err(); err != nil {
		return err
	}
	for _, p := range s.pending {
		s.snap.parsed[s.key(p.skill.Dir)] = p
		if p.err != nil {
			s.diagnose(p.skill.Dir, "%v", p.err)
			continue
		}
		s.found = append(s.found, p.skill)
	}
	return nil
}
