package patch

import (
	"github.com/perstack-ai/perstack-base/sandbox/fault"

	"errors"
	"io/fs"
	"path"
	"strings"
)

// files is the tree as it will be: the disk, and over it what was planned.
type files struct {
	tree  Tree
	nodes map[string]*node // by name
	order []string         // the names in nodes, as they came
}

// A node is what the plan made of a name.
type node struct {
	state   state
	data    []byte      // of a file
	mode    fs.FileMode // permission bits, when known
	known   bool
	setMode bool   // they are not those that the file would have anyway
	path    string // the spelling last used
	onDisk  bool   // the disk has an entry of this name
	link    bool   // which is a link
}

type state byte

const (
	absent state = iota
	file
	directory
)

// A place is where a path leads in the planned tree.
type place struct {
	name   string
	state  state       // what is there
	mode   fs.FileMode // its mode, when known
	known  bool
	size   int64
	onDisk bool
}

// source finds what a section works on; it must be a regular file, or without
// follow also a link.
func (f *files) source(p string, follow bool) (place, error) {
	at, err := f.locate(p, follow)
	if err == nil && at.state == absent || errors.Is(err, fault.ErrParentIsFile) {
		return place{}, &PathError{Path: p, Err: fs.ErrNotExist}
	}
	return at, err
}

// target finds where a section writes: a regular file, or nothing yet.
func (f *files) target(p string) (place, error) {
	at, err := f.locate(p, true)
	if err == nil && at.known && at.mode&0o200 == 0 {
		return place{}, &PathError{Path: p, Err: fault.ErrNotWritable}
	}
	return at, err
}

// locate finds where p leads. Directories and special files are errors.
func (f *files) locate(p string, follow bool) (place, error) {
	below, err := f.planned(p)
	if err != nil || below != "" {
		return f.placeOf(below), err
	}
	e, err := f.tree.Lookup(p, false)
	if err == nil && e.Mode&fs.ModeSymlink != 0 && follow && f.nodes[e.Name] == nil {
		e, err = f.tree.Lookup(p, true)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return place{}, err
	}
	at := f.placeOf(e.Name)
	if f.nodes[e.Name] == nil && err == nil {
		at = place{name: e.Name, state: file, mode: e.Mode, known: true, size: e.Size, onDisk: true}
	}
	return at, checkKind(p, at)
}

// placeOf is a name as far as the plan knows it.
func (f *files) placeOf(name string) place {
	at := place{name: name}
	if n := f.nodes[name]; n != nil {
		at.state, at.mode, at.known = n.state, n.mode, n.known
		at.size = int64(len(n.data))
	}
	return at
}

func checkKind(p string, at place) error {
	switch kind := at.mode.Type(); {
	case at.state == directory || kind == fs.ModeDir:
		return &PathError{Path: p, Err: fault.ErrIsDirectory}
	case kind != 0 && kind != fs.ModeSymlink:
		return &PathError{Path: p, Err: fault.ErrNotRegular}
	}
	return nil
}

// planned walks the directories of p. It refuses a file among them. When one was
// removed by the plan, what the disk has below it is gone, and the name of p is
// what the plan makes of it.
func (f *files) planned(p string) (below string, err error) {
	parts := strings.Split(path.Clean(p), "/")
	for i := 1; i < len(parts); i++ {
		if parts[i-1] == ".." {
			continue
		}
		parent := strings.Join(parts[:i], "/")
		name, isFile := f.parent(parent)
		if isFile {
			return "", &PathError{Path: p, Parent: parent, Err: fault.ErrParentIsFile}
		}
		if n := f.nodes[name]; n != nil && n.onDisk && n.state != file {
			return f.descend(p, name, parts[:i], parts[i:])
		}
	}
	return "", nil
}

// parent finds a directory on the way to a path: its name, and whether it is a
// file. Errors are left to the look at the path itself.
func (f *files) parent(p string) (name string, isFile bool) {
	e, err := f.tree.Lookup(p, false)
	if f.nodes[e.Name] == nil && err == nil && e.Mode&fs.ModeSymlink != 0 {
		e, err = f.tree.Lookup(p, true)
	}
	if n := f.nodes[e.Name]; n != nil {
		return e.Name, n.state == file
	}
	return e.Name, err == nil && !e.Mode.IsDir()
}

// descend follows the parts of p below a name that the plan has removed, where
// only the plan knows what is.
func (f *files) descend(p, name string, above, parts []string) (string, error) {
	for i, part := range parts {
		if n := f.nodes[name]; n != nil && n.state == file {
			parent := path.Join(append(above, parts[:i]...)...)
			return "", &PathError{Path: p, Parent: parent, Err: fault.ErrParentIsFile}
		}
		name += "/" + part
	}
	return name, checkKind(p, f.placeOf(name))
}

// read returns the content of the file at a place.
func (f *files) read(at place, p string) ([]byte, error) {
	if at.size > MaxBytes {
		return nil, &PathError{Path: p, Err: ErrTooLarge}
	}
	if n := f.nodes[at.name]; n != nil {
		return n.data, nil
	}
	data, err := f.tree.ReadFile(at.name)
	if err == nil && len(data) > MaxBytes {
		err = &PathError{Path: p, Err: ErrTooLarge}
	}
	return data, err
}

// write plans the content of a file, and the directories above it.
func (f *files) write(at place, p string, data []byte) *node {
	n := f.node(at, p)
	n.state, n.data = file, data
	for dir := path.Dir(at.name); dir != "."; dir = path.Dir(dir) {
		d := f.nodes[dir]
		if d == nil {
			d = f.node(place{name: dir}, p)
		}
		if d.state == directory {
			break
		}
		d.state = directory
	}
	return n
}

// remove plans that an entry goes.
func (f *files) remove(at place, p string) {
	n := f.node(at, p)
	n.state, n.data, n.known, n.setMode = absent, nil, false, false
}

// node is the node for a place, made when the plan had none.
func (f *files) node(at place, p string) *node {
	n := f.nodes[at.name]
	if n == nil {
		n = &node{mode: at.mode.Perm(), known: at.known, onDisk: at.onDisk, link: at.mode&fs.ModeSymlink != 0}
		f.nodes[at.name] = n
		f.order = append(f.order, at.name)
	}
	n.path = p
	return n
}

// changes lists what to do: first what goes, then what is written. A link that
// became a file goes first, so that the file is not written through it.
func (f *files) changes() []Change {
	var removed, written []Change
	for _, name := range f.order {
		n := f.nodes[name]
		if n.onDisk && (n.state != file || n.link) {
			removed = append(removed, Change{Name: name, Path: n.path, Remove: true})
		}
		if n.state == file {
			written = append(written, Change{Name: name, Path: n.path, Data: n.data, SetMode: n.setMode, Mode: n.mode})
		}
	}
	return append(removed, written...)
}
