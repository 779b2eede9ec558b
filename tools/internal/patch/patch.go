// Package patch reads patches and plans what they do to a tree of files.
//
// Start with [Parse], which turns the text of a patch into a [Patch]. Its method
// Plan finds the place of every change and returns a [Plan]: the list of what to
// write and remove, which the caller carries out as one step. Nothing here
// writes; the disk is seen through the small interface [Tree].
//
// A refusal is a [*SyntaxError], a [*PathError], a [*MatchError], or what Tree
// said. Its text is one sentence; what helps to go on is in its Hint.
package patch

// A Patch is a list of changes to files, in the order in which they act.
type Patch struct {
	Sections []Section
}

// Kind is what a section does to its file.
type Kind byte

// The kinds of section.
const (
	Add Kind = iota
	Delete
	Update
)

// A Section is what a patch does to one file.
type Section struct {
	Kind    Kind
	Path    string   // as spelled, trimmed; never empty, never absolute
	Line    int      // of the section's header in the patch, counted from 1
	MoveTo  string   // Update: the new path, "" when the file stays
	Content []string // Add: the lines of the new file, without their ends
	NoEnd   bool     // Add: the last of them has none
	Chunks  []Chunk  // Update: in file order; empty only for a pure rename. Delete: what the file must hold
	Fresh   bool     // Add, MoveTo: nothing may be there yet
	Mode    *bool    // whether the file is made executable; nil: as it is
}

// A Chunk is one change within a file.
type Chunk struct {
	Line      int      // of its first header, or else of its first line, in the patch
	Headers   []string // the texts behind @@, without the bare ones
	Lines     []Line   // never empty
	EndOfFile bool     // only the end of the file will do
	Unified   bool     // of a unified diff: of several places the one nearest to Hint is meant
	Hint      int      // the line of the file where it stood, counted from 1
	NoEnd     bool     // the last line that it adds is the file's last and has no end
}

// A Line is one line of a chunk.
type Line struct {
	Op   Op
	Text string // without its end
}

// Op tells what becomes of a line.
type Op byte

// What becomes of a line.
const (
	Context Op = ' '
	Removed Op = '-'
	Added   Op = '+'
)

// old is the lines that the file must have.
func (c *Chunk) old() []string {
	var old []string
	for _, l := range c.Lines {
		if l.Op != Added {
			old = append(old, l.Text)
		}
	}
	return old
}

// Paths returns every path that the patch names, as spelled, in patch order,
// each once. They are what has to be locked while the patch is applied.
func (p *Patch) Paths() []string {
	var paths []string
	seen := map[string]bool{"": true}
	for i := range p.Sections {
		for _, path := range [...]string{p.Sections[i].Path, p.Sections[i].MoveTo} {
			if !seen[path] {
				seen[path] = true
				paths = append(paths, path)
			}
		}
	}
	return paths
}
