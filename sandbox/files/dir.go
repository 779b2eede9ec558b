package files

import (
	"github.com/perstack-ai/perstack-base/sandbox"
	"io/fs"
	"os"
	"strings"
	"time"
)

// A Dir is an open directory, for walkers: what is below it is opened relative
// to it, one name at a time and never through a link, so that a walk pays
// neither for long paths nor for checks that it repeats. It stays inside by
// construction. Entries is for one goroutine at a time, opening for any number.
type Dir struct {
	f    *FS
	path Path
	dir  handle
}

// A DirEntry is a name in a directory, and what kind of file it is. It knows no more
// than the listing does: to ask for more by name would be to look somewhere else.
type DirEntry struct {
	Name string
	Type fs.FileMode
}

// A DirFile is a regular file that a walk came to: read once, from its start to
// its end, by one goroutine.
type DirFile struct {
	content
	kind    fs.FileMode
	modTime time.Time
}

// ModTime is when the content last changed, as of the opening.
func (f *DirFile) ModTime() time.Time { return f.modTime }

// OpenDir opens a directory for walking; links in name are followed as always.
func (f *FS) OpenDir(name string) (*Dir, error) {
	return within(f, func(st *state) (*Dir, error) {
		p, err := f.dir(st, name)
		if err != nil {
			return nil, err
		}
		h, err := openHandle(st, p.Rel)
		if err != nil {
			return nil, forReading(name, err)
		}
		return &Dir{f: f, path: p, dir: h}, nil
	})
}

// Path is where the directory is, all links resolved.
func (d *Dir) Path() Path { return d.path }

// Close releases the directory.
func (d *Dir) Close() error { return d.dir.close() }

// Entries lists the directory, in the order of the disk, without the reserved
// entry at the top. Only names and types are read.
func (d *Dir) Entries() ([]DirEntry, error) {
	list, err := d.dir.list()
	if err != nil {
		return nil, explain(d.path.Rel, err, sandbox.ErrNotReadable)
	}
	top := d.path.Rel == "."
	entries := make([]DirEntry, 0, len(list))
	for _, e := range list {
		if !top || !reserved(e.Name()) {
			entries = append(entries, DirEntry{e.Name(), e.Type()})
		}
	}
	return entries, nil
}

// OpenDir opens the directory called name in d. A link is ErrNotDirectory.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	p, err := d.entry(name)
	if err != nil {
		return nil, err
	}
	h, err := d.dir.openDir(name)
	if err != nil {
		return nil, explainEntry(p.Rel, err, sandbox.ErrNotDirectory)
	}
	p.Exists, p.Type = true, fs.ModeDir
	return &Dir{f: d.f, path: p, dir: h}, nil
}

// OpenFile opens the regular file called name in d. A link, like everything
// else that is not a regular file, is ErrNotRegular.
func (d *Dir) OpenFile(name string) (*DirFile, error) {
	p, err := d.entry(name)
	if err != nil {
		return nil, err
	}
	file, err := d.dir.openFile(name)
	if err != nil {
		return nil, explainEntry(p.Rel, err, sandbox.ErrNotRegular)
	}
	p.Exists, p.Type = true, file.kind
	if err := wantRegular(p.Rel, p); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// entry is the place of one entry of d.
func (d *Dir) entry(name string) (Path, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsFunc(name, notInName) {
		return Path{}, &sandbox.PathError{Path: name, Detail: "is not the name of an entry", Err: sandbox.ErrBadPath}
	}
	rel := name
	if d.path.Rel != "." {
		rel = d.path.Rel + "/" + name
	}
	if reserved(rel) {
		return Path{}, &sandbox.PathError{Path: rel, Err: sandbox.ErrReserved}
	}
	return d.f.path(rel), nil
}

func notInName(r rune) bool {
	return r == 0 || r == '/' || r < 0x80 && os.IsPathSeparator(uint8(r))
}

// explainEntry is explain where a link is refused rather than followed.
func explainEntry(rel string, err, other error) error {
	if isLinkRefusal(err) {
		return &sandbox.PathError{Path: rel, Err: other}
	}
	return explain(rel, err, sandbox.ErrNotReadable)
}
