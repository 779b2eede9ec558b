package skillrepo

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/signature"
)

// A Root is a directory to look for skills in.
type Root struct {
	// FS is the tree that may be read; links that lead out of it are refused.
	// It must implement fs.ReadLinkFS, as os.DirFS and the FS of an os.Root do: what
	// hides its links cannot be guarded. Where commands may write, it must not itself
	// follow links out of the tree: one may be put in the place of a directory
	// between two steps.
	FS fs.FS
	// Path is where the root lies in FS, slash-separated; "" and "." mean FS itself.
	Path string
	// Dir is the absolute directory of the root on the machine. Without its
	// tail Path it is the directory of FS, which should hold no links.
	Dir string
	// Trusted: someone chose this root, so its hooks and inline commands may run.
	Trusted bool
	// Writable are the directories in FS, absolute on the machine, that commands may
	// write. A link in one of them must not lead out of it, and when the root lies
	// in one, links in the root must not lead out of the root.
	Writable []string
}

// ErrOutside: a path or a link leads out of the directory it belongs to.
var ErrOutside = errors.New("leads outside the directory")

// ErrNotRegular: a directory or a special file where a regular file is needed.
var ErrNotRegular = errors.New("is not a regular file")

const maxLinkHops = 40 // the kernel's own bound

// A tree is a file system and the place on the machine where it begins.
type tree struct {
	fsys   fs.FS
	base   string   // slash-separated, absolute, without a slash at the end; "" for "/"
	guards []string // link-free directories in it, out of which no link in them leads
}

// open checks a root and splits it into a tree and the root's path in it.
func (r Root) open() (tree, string, error) {
	p := path.Clean(filepath.ToSlash(r.Path))
	dir := path.Clean(filepath.ToSlash(r.Dir))
	if _, ok := r.FS.(fs.ReadLinkFS); !ok || !fs.ValidPath(p) {
		return tree{}, "", fmt.Errorf("skill root %q has no usable file tree", r.Dir)
	}
	if !path.IsAbs(dir) && !filepath.IsAbs(r.Dir) {
		return tree{}, "", fmt.Errorf("skill root %q is not absolute", r.Dir)
	}
	base := dir
	if p != "." {
		var ok bool
		if base, ok = strings.CutSuffix(dir, "/"+p); !ok {
			return tree{}, "", fmt.Errorf("skill root %q does not end in %q", r.Dir, p)
		}
	}
	t := tree{fsys: r.FS, base: strings.TrimSuffix(base, "/")}
	for _, dir := range r.Writable {
		t = t.guarding(dir)
	}
	return t, p, nil
}

// guarding is the tree with one more guard, the absolute directory dir, if it is there.
func (t tree) guarding(dir string) tree {
	p, ok := strings.CutPrefix(path.Clean(filepath.ToSlash(dir)), t.base+"/")
	if p == "" {
		p = "."
	}
	if !ok || !fs.ValidPath(p) {
		return t
	}
	if real, info, err := t.resolve(".", p); err == nil && info.IsDir() {
		t.guards = append(slices.Clip(t.guards), real)
	}
	return t
}

// narrowed is the tree for a root at the link-free path real: where commands may
// write it, the root is a guard as well.
func (t tree) narrowed(real string) tree {
	if slices.ContainsFunc(t.guards, func(g string) bool { return within(g, real) }) {
		t.guards = append(slices.Clip(t.guards), real)
	}
	return t
}

// pinned is the root as it lies now, if a link that commands can change leads to
// it: what the user named at the start is where that link led then.
func (r Root) pinned() Root {
	t, p, err := r.open()
	if err != nil || len(t.guards) == 0 {
		return r
	}
	if _, _, err := t.resolve(".", p); !errors.Is(err, ErrOutside) {
		return r
	}
	t.guards = nil
	if real, _, err := t.resolve(".", p); err == nil {
		r.Path, r.Dir = real, t.abs(real)
	}
	return r
}

// abs is the absolute path on the machine of a path in the tree.
func (t tree) abs(p string) string {
	if p == "." {
		return filepath.FromSlash(t.base + "/")[:max(1, len(t.base))]
	}
	return filepath.FromSlash(t.base + "/" + p)
}

// resolve follows every link in rel, seen from the link-free directory dir. It
// returns the link-free path and what is there. When something on the way is
// missing, the error is fs.ErrNotExist and the path is where it would be.
func (t tree) resolve(dir, rel string) (string, fs.FileInfo, error) {
	rest := strings.Split(path.Clean(rel), "/")
	cur, hops := dir, 0
	var info fs.FileInfo
	var bounds []string // the guards of the links that were followed
	for len(rest) > 0 {
		next, err := step(cur, rest[0])
		if err == nil && slices.ContainsFunc(bounds, func(g string) bool { return !within(g, next) && !within(next, g) }) {
			err = ErrOutside
		}
		if err != nil {
			return "", nil, err
		}
		rest = rest[1:]
		if info, err = fs.Lstat(t.fsys, next); err != nil {
			if missing := path.Join(append([]string{next}, rest...)...); fs.ValidPath(missing) {
				return missing, nil, err
			}
			return "", nil, ErrOutside
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			if cur = next; !info.IsDir() && len(rest) > 0 {
				return cur, nil, &fs.PathError{Op: "open", Path: rel, Err: fs.ErrNotExist}
			}
			continue
		}
		if hops++; hops > maxLinkHops {
			return "", nil, errors.New("too many links")
		}
		target, err := fs.ReadLink(t.fsys, next)
		if err != nil {
			return "", nil, err
		}
		parts, absolute, err := t.target(target)
		if err != nil {
			return "", nil, err
		}
		for _, g := range t.guards {
			if within(g, next) {
				bounds = append(bounds, g)
			}
		}
		if absolute {
			cur = "."
		}
		rest = slices.Concat(parts, rest)
	}
	if slices.ContainsFunc(bounds, func(g string) bool { return !within(g, cur) }) {
		return "", nil, ErrOutside
	}
	if info == nil || info.Mode()&fs.ModeSymlink != 0 {
		var err error
		if info, err = fs.Lstat(t.fsys, cur); err != nil {
			return cur, nil, err
		}
	}
	return cur, info, nil
}

// step goes from a link-free directory to one of its entries, or to its parent.
func step(cur, name string) (string, error) {
	switch {
	case name == "." || name == "":
		return cur, nil
	case name == ".." && cur == ".":
		return "", ErrOutside
	case name == "..":
		return path.Dir(cur), nil
	}
	next := path.Join(cur, name)
	if !fs.ValidPath(next) {
		return "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return next, nil
}

// target splits what a link says; an absolute target must lie in the tree.
func (t tree) target(s string) (parts []string, absolute bool, err error) {
	s = filepath.ToSlash(s)
	if !path.IsAbs(s) && !filepath.IsAbs(s) {
		return strings.Split(s, "/"), false, nil
	}
	s = path.Clean(s)
	if s == t.base {
		return nil, true, nil
	}
	in, ok := strings.CutPrefix(s, t.base+"/")
	if !ok {
		return nil, true, ErrOutside
	}
	return strings.Split(in, "/"), true, nil
}

// within reports whether the link-free path p is dir or lies below it.
func within(dir, p string) bool {
	return dir == "." || p == dir || strings.HasPrefix(p, dir+"/")
}

// openFile opens the regular file at the link-free path p. What was opened must
// still be what lay there before, so that a link put in its place is not followed.
func (t tree) openFile(p string) (fs.File, fs.FileInfo, error) {
	before, err := fs.Lstat(t.fsys, p)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "open", Path: p, Err: ErrNotRegular}
	}
	f, err := t.fsys.Open(p)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || !signature.Of(before).SameFile(info)) {
		err = &fs.PathError{Op: "open", Path: p, Err: errors.New("changed while it was opened")}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// maxEntries bounds one directory listing and the walk over one skill.
const maxEntries = 50_000

// readDir lists the link-free directory p in byte order of names.
func (t tree) readDir(p string) (entries []fs.DirEntry, cut bool, err error) {
	entries, cut, _, err = t.readDirSigned(p)
	return entries, cut, err
}

// readDirSigned returns the signature of the directory before it was listed as well.
func (t tree) readDirSigned(p string) (entries []fs.DirEntry, cut bool, sig signature.Signature, err error) {
	f, err := t.fsys.Open(p)
	if err != nil {
		return nil, false, sig, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, false, sig, err
	}
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, false, sig, &fs.PathError{Op: "readdir", Path: p, Err: errors.New("is not a directory")}
	}
	entries, err = d.ReadDir(maxEntries)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, len(entries) == maxEntries, signature.Of(info), err
}
