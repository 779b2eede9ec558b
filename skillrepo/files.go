package skillrepo

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/signature"
)

// A File is one regular file of a skill, or a link to one inside the skill.
type File struct {
	Path   string      // relative to the skill directory, slash-separated
	Size   int64       // bytes
	Mode   fs.FileMode // of the file itself, behind links
	Digest string      // sha256:<hex> of the content; only in a Manifest

	real string // link-free, in the tree
	sig  signature.Signature
}

// A Listing is the files of a skill as they are on disk.
type Listing struct {
	Files       []File       // byte order of paths
	Dirs        []string     // directories that are searched for files, byte order of paths
	Bytes       int64        // of all files together
	Diagnostics []Diagnostic // what was left out, and which limits of publishing are passed
}

// Limits of a skill that is published; a larger one still works.
const (
	maxPublishedFiles = 512
	maxPublishedBytes = 16 << 20
	maxPublishedFile  = 4 << 20
)

// leftOut are directories whose files are not the skill's.
var leftOut = map[string]bool{
	".git": true, ".hg": true, ".svn": true, "node_modules": true, "__pycache__": true, ".venv": true,
}

// Files lists the skill's files without reading them.
func (s *Skill) Files(ctx context.Context) (*Listing, error) {
	if err := s.inPlace(); err != nil {
		return nil, err
	}
	w := walk{ctx: ctx, skill: s, list: &Listing{}, notes: notes{dir: s.Dir}}
	if err := w.dir(""); err != nil {
		return nil, err
	}
	slices.SortFunc(w.list.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(w.list.Dirs)
	w.judgeSize()
	w.list.Diagnostics = w.notes.list
	return w.list, nil
}

// A walk goes through one skill directory.
type walk struct {
	ctx   context.Context
	skill *Skill
	list  *Listing
	notes notes
	seen  int  // entries
	full  bool // some entries were not looked at
}

// dir adds what is below the directory rel, which holds no links.
func (w *walk) dir(rel string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	entries, cut, err := w.skill.tree.readDir(path.Join(w.skill.real, rel))
	if err != nil {
		if rel == "" {
			return plainError("the skill directory cannot be read", err)
		}
		w.notes.warn("the directory %q is left out: %v", rel, plainError("it cannot be read", err))
	}
	w.full = w.full || cut
	for _, e := range entries {
		if w.seen++; w.seen > maxEntries {
			w.full = true
			return nil
		}
		if err := w.entry(path.Join(rel, e.Name()), e); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(rel string, e fs.DirEntry) error {
	switch {
	case e.Name() == ".DS_Store" || e.IsDir() && leftOut[e.Name()]:
		return nil
	case !fs.ValidPath(rel):
		w.notes.warn("%q is left out: its name is not valid UTF-8", rel)
		return nil
	case e.IsDir():
		w.list.Dirs = append(w.list.Dirs, rel)
		return w.dir(rel)
	}
	if f, ok := w.skill.fileAt(rel, e, &w.notes); ok {
		w.list.Files = append(w.list.Files, f)
		w.list.Bytes += f.Size
	}
	return nil
}

// judgeSize warns of each limit that is passed.
func (w *walk) judgeSize() {
	if w.full {
		w.notes.warn("more than %d entries; the rest is left out", maxEntries)
	}
	if k := len(w.list.Files); k > maxPublishedFiles {
		w.notes.warn("%d files; skills of more than %d are not published", k, maxPublishedFiles)
	}
	if w.list.Bytes > maxPublishedBytes {
		w.notes.warn("%d bytes; skills of more than %d are not published", w.list.Bytes, maxPublishedBytes)
	}
	for _, f := range w.list.Files {
		if f.Size > maxPublishedFile {
			w.notes.warn("%q has %d bytes; skills with a file of more than %d are not published", f.Path, f.Size, maxPublishedFile)
		}
	}
}

// publishable reports whether the limits of publishing are kept.
func (l *Listing) publishable() bool {
	large := func(f File) bool { return f.Size > maxPublishedFile }
	return len(l.Files) <= maxPublishedFiles && l.Bytes <= maxPublishedBytes && !slices.ContainsFunc(l.Files, large)
}

// find returns the file of that path.
func (l *Listing) find(p string) (File, bool) {
	i, ok := slices.BinarySearchFunc(l.Files, p, func(f File, p string) int { return strings.Compare(f.Path, p) })
	if !ok {
		return File{}, false
	}
	return l.Files[i], true
}

// fileAt makes a File of an entry that is not a directory, or says why not.
func (s *Skill) fileAt(rel string, e fs.DirEntry, n *notes) (File, bool) {
	real, info, err := path.Join(s.real, rel), fs.FileInfo(nil), error(nil)
	if e.Type()&fs.ModeSymlink != 0 {
		if real, info, err = s.tree.resolve(path.Dir(real), e.Name()); err == nil && !within(s.real, real) {
			err = ErrOutside
		}
	} else {
		info, err = fs.Lstat(s.tree.fsys, real)
	}
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	if err != nil {
		n.warn("%v", plainError(fmt.Sprintf("%q is left out", rel), err))
		return File{}, false
	}
	return File{Path: rel, Size: info.Size(), Mode: info.Mode(), real: real, sig: signature.Of(info)}, true
}

// Settled reports whether the file, listed at the given time, can no longer
// change without its next listing being another one.
func (f File) Settled(listed time.Time) bool { return f.sig.Settled(listed) }
