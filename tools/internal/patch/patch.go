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

import (
	"slices"
	"strings"
)

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
	Mode    *bool    // whether the file shall be executable; nil: as it is
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

// Format returns the patch as text; Parse gives back the same Patch, but for
// the line numbers.
func (p *Patch) Format() string {
	var b strings.Builder
	line := func(parts ...string) {
		n := len(parts) - 1
		if strings.HasSuffix(parts[n], "\r") {
			parts = append(slices.Clone(parts), "\r") // Parse takes one away
		}
		for _, s := range parts {
			b.WriteString(s)
		}
		b.WriteByte('\n')
	}
	line(beginPatch)
	for i := range p.Sections {
		p.Sections[i].format(line)
	}
	line(endPatch)
	return b.String()
}

func (s *Section) format(line func(...string)) {
	line([...]string{Add: addFile, Delete: deleteFile, Update: updateFile}[s.Kind], s.Path)
	for _, text := range s.Content {
		line("+", text)
	}
	if s.MoveTo != "" {
		line(moveTo, s.MoveTo)
	}
	for i := range s.Chunks {
		s.Chunks[i].format(line)
	}
}

func (c *Chunk) format(line func(...string)) {
	if len(c.Headers) == 0 {
		line("@@")
	}
	for _, text := range c.Headers {
		line("@@ ", text)
	}
	for _, l := range c.Lines {
		line(string(l.Op), l.Text)
	}
	if c.EndOfFile {
		line(endOfFile)
	}
}
