package patch

import (
	"github.com/perstack-ai/perstack-base/sandbox/fault"

	"io/fs"
	"strings"
)

// A Tree is the disk as the planner sees it. Paths are given as the patch spells
// them, or a leading part of such a path.
type Tree interface {
	// Lookup finds what path leads to. Links in its directories are followed;
	// one in its last component only if follow is set. When nothing is there, or
	// a link leads to nothing, the error is fs.ErrNotExist and Entry.Name is the
	// name of the file that writing to path would create. The same goes for a
	// path below a file. Other errors (outside, reserved, ...) refuse the patch.
	Lookup(path string, follow bool) (Entry, error)
	// ReadFile returns the content of the regular file that Lookup named so.
	ReadFile(name string) ([]byte, error)
}

// An Entry is a name in a tree and what stands there.
type Entry struct {
	Name string      // the only name of its place: below the root, slashes, no links in it
	Mode fs.FileMode // type and permission bits
	Size int64       // bytes
}

// A Plan is what a patch comes to: changes that make sense only all together.
type Plan struct {
	Changes []Change // what to do, in this order; no name has two writes
	summary summary
}

// A Change writes or removes one entry of the tree.
type Change struct {
	Name   string // as Lookup gave it; no component of it is a link, unless the entry is removed
	Path   string // the spelling by which the patch last named it
	Remove bool   // remove the entry itself; otherwise write Data
	Data   []byte
	// SetMode: the file gets the permission bits Mode. Otherwise an existing file
	// keeps its own and a new one gets the usual ones.
	SetMode bool
	Mode    fs.FileMode
}

// Summary is the answer to the one who sent the patch: the files, and notes
// about places that were not matched exactly.
func (p *Plan) Summary() string { return p.summary.String() }

// Plan works out, section by section, what the patch does to the tree. The
// changes come back only when every section can be applied.
func (p *Patch) Plan(tree Tree) (*Plan, error) {
	pl := planner{files: files{tree: tree, nodes: map[string]*node{}}}
	for i := range p.Sections {
		if err := pl.section(&p.Sections[i]); err != nil {
			return nil, err
		}
	}
	return &Plan{Changes: pl.files.changes(), summary: pl.summary}, nil
}

// A planner carries out sections on the planned files.
type planner struct {
	files   files
	summary summary
}

func (pl *planner) section(s *Section) error {
	switch s.Kind {
	case Add:
		return pl.add(s)
	case Delete:
		return pl.delete(s)
	}
	return pl.update(s)
}

func (pl *planner) add(s *Section) error {
	var data []byte
	if len(s.Content) > 0 {
		data = []byte(strings.Join(s.Content, "\n"))
		if !s.NoEnd {
			data = append(data, '\n')
		}
	}
	at, err := pl.target(s, s.Path)
	if err != nil {
		return err
	}
	n := pl.files.write(at, s.Path, data)
	if s.Mode != nil && *s.Mode {
		n.mode, n.known, n.setMode = 0o755, true, true
	}
	pl.summary.added.add(s.Path)
	return nil
}

// target finds where a section writes.
func (pl *planner) target(s *Section, path string) (place, error) {
	at, err := pl.files.target(path)
	if err == nil && s.Fresh && at.state != absent {
		err = &PathError{Path: path, Err: ErrExists}
	}
	return at, err
}

func (pl *planner) delete(s *Section) error {
	at, err := pl.files.source(s.Path, false)
	if err != nil {
		return err
	}
	if len(s.Chunks) > 0 {
		if err := pl.checkContent(s, at); err != nil {
			return err
		}
	}
	pl.files.remove(at, s.Path)
	pl.summary.deleted.add(s.Path)
	return nil
}

// checkContent refuses to delete a file that is not what the patch removes.
func (pl *planner) checkContent(s *Section, at place) error {
	if at.mode&fs.ModeSymlink != 0 {
		return &PathError{Path: s.Path, Err: fault.ErrNotRegular}
	}
	data, err := pl.files.read(at, s.Path)
	if err != nil {
		return err
	}
	left, _, err := update(s, data)
	if err == nil && len(left) > 0 {
		err = &PathError{Path: s.Path, Err: ErrLeftOver}
	}
	return err
}

func (pl *planner) update(s *Section) error {
	at, err := pl.files.source(s.Path, true)
	if err != nil {
		return err
	}
	data, err := pl.files.read(at, s.Path)
	if err != nil {
		return err
	}
	changed, notes, err := update(s, data)
	if err != nil {
		return err
	}
	if err := pl.put(s, at, changed); err != nil {
		return err
	}
	pl.summary.notes = append(pl.summary.notes, notes...)
	return nil
}

// put writes the updated content, to the new path when the file moves.
func (pl *planner) put(s *Section, from place, data []byte) error {
	path := s.Path
	find := pl.files.target
	if s.MoveTo != "" {
		path, find = s.MoveTo, func(path string) (place, error) { return pl.target(s, path) }
	}
	to, err := find(path)
	if err != nil {
		return err
	}
	if to.name != from.name {
		entry, err := pl.files.source(s.Path, false)
		if err != nil {
			return err
		}
		pl.files.remove(entry, s.Path)
	}
	n := pl.files.write(to, path, data)
	if to.name != from.name && from.known {
		n.mode, n.known, n.setMode = from.mode.Perm(), true, true
	}
	if s.Mode != nil && from.known {
		n.mode, n.known, n.setMode = withExecute(from.mode.Perm(), *s.Mode), true, true
	}
	pl.summary.modified.add(path)
	return nil
}

// maxNotes is how many notes a summary has at most.
const maxNotes = 10

// A summary gathers what is told about an applied patch.
type summary struct {
	added, modified, deleted list
	notes                    []string
}

// A list is paths in order, each once.
type list struct {
	paths []string
	seen  map[string]bool
}

func (l *list) add(path string) {
	if l.seen[path] {
		return
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[path] = true
	l.paths = append(l.paths, path)
}

func (s *summary) String() string {
	var b strings.Builder
	b.WriteString("Success. Updated the following files:")
	for _, group := range [...]struct {
		letter string
		list   *list
	}{{"A", &s.added}, {"M", &s.modified}, {"D", &s.deleted}} {
		for _, path := range group.list.paths {
			b.WriteString("\n" + group.letter + " " + path)
		}
	}
	for i, note := range s.notes[:min(len(s.notes), maxNotes)] {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("\nNote: " + note)
	}
	return b.String()
}
