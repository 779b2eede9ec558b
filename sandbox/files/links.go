package files

import (
	"errors"
	"github.com/perstack-ai/perstack-base/sandbox"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// resolve finds where name leads. follow says whether a link at the very end is
// followed too. What does not exist yet resolves as far as it exists.
func (f *FS) resolve(st *state, name string, follow bool) (Path, error) {
	rel, err := f.clean(st, name)
	if err != nil {
		return Path{}, err
	}
	if p, ok := f.plain(st, rel, follow); ok {
		return p, nil
	}
	w := walk{f: f, st: st, name: name, follow: follow, hops: f.limits.LinkHops}
	return w.run(rel)
}

// plain answers for the usual path: no link on the way, so it is what it says.
func (f *FS) plain(st *state, rel string, follow bool) (Path, bool) {
	mode, err := st.lookup(rel)
	p := f.path(rel)
	switch {
	case err == nil:
		p.Exists, p.Type = true, mode
		return p, !follow || mode&fs.ModeSymlink == 0
	case errors.Is(err, fs.ErrNotExist):
		mode, err = st.lookup(path.Dir(rel))
		return p, err == nil && mode.IsDir()
	}
	return p, false
}

// A walk resolves one name component by component inside the root, because
// os.Root refuses absolute links even when they stay inside and follows only
// eight. It chooses a name and enforces nothing: the caller opens that name
// through os.Root.
type walk struct {
	f      *FS
	st     *state
	name   string // as the caller gave it
	follow bool
	hops   int    // links that may still be followed
	link   string // the link last followed, below the root
	done   string // resolved so far: real directories only; "" is the root
}

// errMissing ends a walk at a component that does not exist.
var errMissing = errors.New("missing")

func (w *walk) run(rel string) (Path, error) {
	rest, mode := rel, fs.ModeDir
	for rest != "" {
		var comp string
		comp, rest, _ = strings.Cut(rest, "/")
		var err error
		switch comp {
		case "", ".":
			continue
		case "..":
			mode = fs.ModeDir
			rest, err = w.up(rest)
		default:
			mode, rest, err = w.step(comp, rest)
		}
		if err == errMissing {
			return w.missing(rest)
		}
		if err != nil {
			return Path{}, err
		}
	}
	p := w.f.path(orDot(w.done))
	p.Exists, p.Type = true, mode
	return p, nil
}

// step takes one component: into a directory, along a link, onto the last entry.
func (w *walk) step(comp, rest string) (fs.FileMode, string, error) {
	next := path.Join(w.done, comp)
	if reserved(next) {
		return 0, "", &sandbox.PathError{Path: w.name, Err: sandbox.ErrReserved}
	}
	info, err := w.st.root.Lstat(next)
	if errors.Is(err, fs.ErrNotExist) {
		w.done = next
		return 0, rest, errMissing
	}
	if err != nil {
		return 0, "", err
	}
	if w.done == "" && w.st.isReserved(info) {
		return 0, "", &sandbox.PathError{Path: w.name, Err: sandbox.ErrReserved}
	}
	mode := info.Mode().Type()
	switch {
	case mode&fs.ModeSymlink != 0 && (w.follow || rest != ""):
		rest, err = w.along(next, rest)
		return fs.ModeDir, rest, err
	case !mode.IsDir() && rest != "":
		return 0, "", &sandbox.PathError{Path: w.name, Parent: w.spell(next), Err: sandbox.ErrParentIsFile}
	}
	w.done = next
	return mode, rest, nil
}

// along follows the link and returns what is left to walk.
func (w *walk) along(link, rest string) (string, error) {
	if w.hops--; w.hops < 0 {
		return "", &sandbox.PathError{Path: w.name, Err: sandbox.ErrLinkLoop}
	}
	target, err := w.st.root.Readlink(link)
	if err != nil {
		return "", err
	}
	w.link = link
	if filepath.IsAbs(target) {
		w.done = ""
		rel, ok := w.f.spelled(target)
		if !ok {
			rel, ok = w.f.below(w.st, filepath.Clean(target))
		}
		if !ok {
			return "", w.escapes()
		}
		target = rel
	}
	return filepath.ToSlash(target) + "/" + rest, nil
}

// up goes to the parent. Above the root the way is text again: it may come back
// by the workspace's own name.
func (w *walk) up(rest string) (string, error) {
	if w.done != "" {
		w.done = strings.TrimPrefix(path.Dir(w.done), ".")
		return rest, nil
	}
	above := filepath.Join(filepath.Dir(w.f.real), filepath.FromSlash(rest))
	rel, ok := w.f.below(w.st, above)
	if !ok {
		return "", w.escapes()
	}
	return filepath.ToSlash(rel), nil
}

func (w *walk) escapes() error {
	return &sandbox.PathError{Path: w.name, Link: w.link, Err: sandbox.ErrEscapes}
}

// missing is the answer when done does not exist and rest would be below it.
func (w *walk) missing(rest string) (Path, error) {
	for part := range strings.SplitSeq(rest, "/") {
		if part == ".." {
			return Path{}, &sandbox.PathError{Path: w.name, Err: fs.ErrNotExist}
		}
	}
	return w.f.path(path.Join(w.done, rest)), nil
}

// spell writes a place below the root the way the caller wrote the name.
func (w *walk) spell(rel string) string {
	if filepath.IsAbs(w.name) {
		return w.f.path(rel).Abs
	}
	return rel
}

// isReserved catches the runtime's directory under a name that only the disk
// knows to be the same: short names, letters that fold in other ways.
func (st *state) isReserved(info fs.FileInfo) bool {
	if !info.IsDir() {
		return false
	}
	own, err := st.root.Lstat(reservedName)
	return err == nil && os.SameFile(own, info)
}

// forReading says a parent that is a file in the words of a reader: nothing is there.
func forReading(name string, err error) error {
	if errors.Is(err, sandbox.ErrParentIsFile) || errors.Is(err, syscall.ENOTDIR) {
		return &sandbox.PathError{Path: name, Err: fs.ErrNotExist}
	}
	return explain(name, err, sandbox.ErrNotReadable)
}
