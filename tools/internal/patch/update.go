package patch

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// A splice replaces old lines of a text from line `at` on by what a chunk says.
type splice struct {
	at    int
	old   int // lines of the text that it replaces or keeps as context
	chunk *Chunk
}

// An updater applies one section to one text.
type updater struct {
	section *Section
	text    *text
	finder  *finder
	splices []splice
	notes   []string
	shift   int // of a unified diff: how far below its line number the last chunk was found
}

// update returns the content that the section makes of data, and what should be
// said about the places that it found.
func update(s *Section, data []byte) (changed []byte, notes []string, err error) {
	if len(s.Chunks) == 0 {
		return data, nil, nil
	}
	t, ok := splitLines(data)
	if !ok {
		return nil, nil, &PathError{Path: s.Path, Err: ErrTooManyLines}
	}
	u := &updater{section: s, text: t, finder: newFinder(t, s.Chunks)}
	for i := range s.Chunks {
		if err := u.place(&s.Chunks[i]); err != nil {
			return nil, nil, err
		}
	}
	return u.build(), u.notes, nil
}

// place finds where a chunk belongs.
func (u *updater) place(c *Chunk) error {
	f := u.finder
	for _, header := range c.Headers {
		h, ok := f.find([]string{header}, false)
		if !ok {
			return u.refuse(c, header, []string{header})
		}
		f.cursor = h.line + 1
	}
	old := c.old()
	if len(old) == 0 {
		u.insert(c)
		return nil
	}
	if c.Unified { // it stood there, and moves with the chunks before it
		f.want = c.Hint - 1 + u.shift
	}
	h, ok := f.find(old, c.EndOfFile)
	if f.work >= maxWork {
		return &PathError{Path: u.section.Path, Err: ErrTooRepetitive}
	}
	if !ok {
		return u.refuse(c, "", old)
	}
	if c.Unified {
		u.shift = h.line - (c.Hint - 1)
	}
	u.splices = append(u.splices, splice{at: h.line, old: h.n, chunk: c})
	u.note(c, h)
	f.cursor = h.line + h.n
	return nil
}

// insert places a chunk that only adds: behind its last header, or else at the end.
func (u *updater) insert(c *Chunk) {
	at := u.text.lines()
	switch {
	case c.Unified: // without context it stands behind the line that the hunk names
		at = min(max(c.Hint+u.shift, u.finder.cursor), at)
		u.finder.cursor = at
	case len(c.Headers) > 0 && !c.EndOfFile:
		at = u.finder.cursor
	}
	u.splices = append(u.splices, splice{at: at, chunk: c})
}

// note records what the caller should know about a hit.
func (u *updater) note(c *Chunk, h hit) {
	say := func(what string) {
		u.notes = append(u.notes, fmt.Sprintf("%s:%d: %s", u.section.Path, h.line+1, what))
	}
	if what := notes[h.pass]; what != "" {
		say(what)
	}
	if c.Unified {
		if h.count > 1 && h.line != c.Hint-1 {
			say(fmt.Sprintf("%d places match; the one nearest to line %d was changed.", h.count, c.Hint))
		}
		return
	}
	if h.count > 1 && len(c.Headers) == 0 && !c.EndOfFile {
		say(fmt.Sprintf("%d places match; the first was changed, use @@ to choose.", h.count))
	}
}

// build carries out the splices.
func (u *updater) build() []byte {
	t := u.text
	slices.SortStableFunc(u.splices, func(a, b splice) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(u.last(a), u.last(b)))
	})
	w := writer{text: t}
	w.out.Grow(len(t.bom) + len(t.data) + len(t.data)/8)
	w.out.Write(t.bom)
	at := 0
	for _, s := range u.splices {
		w.keep(at, s.at)
		w.splice(s)
		at = s.at + s.old
	}
	w.keep(at, t.lines())
	return w.out.Bytes()
}

// last is 1 for a splice that belongs behind everything else.
func (u *updater) last(s splice) int {
	if s.old == 0 && !s.chunk.Unified && (s.chunk.EndOfFile || len(s.chunk.Headers) == 0) {
		return 1
	}
	return 0
}

// A writer puts the lines of the new content one behind the other.
type writer struct {
	text *text
	out  bytes.Buffer
	open bool // the last line written has no end yet
}

// keep writes the lines from i to j-1 of the text as they are.
func (w *writer) keep(i, j int) {
	if i == j {
		return
	}
	w.terminate()
	raw := w.text.raw(i, j)
	if w.behindCR() {
		rest := bytes.TrimLeft(raw, "\n")
		w.out.Write(bytes.Repeat([]byte("\r"), len(raw)-len(rest)))
		raw = rest
	}
	w.out.Write(raw)
	w.open = j == w.text.lines() && w.text.unterminated()
}

// behindCR tells whether the last line written ends with a lone CR. An LF behind it
// would become part of its end, so empty lines there end with CR, too.
func (w *writer) behindCR() bool { return bytes.HasSuffix(w.out.Bytes(), []byte("\r")) }

// add writes a new line.
func (w *writer) add(line string) {
	w.terminate()
	eol := w.text.eol
	if line == "" && eol == "\n" && w.behindCR() {
		eol = "\r"
	}
	w.out.WriteString(line)
	w.out.WriteString(eol)
}

// terminate ends the last line of the text when something is put behind it.
func (w *writer) terminate() {
	if w.open {
		w.out.WriteString(w.text.eol)
		w.open = false
	}
}

// splice writes the lines of a chunk. Those that the text did not have, empty
// ones at the end, are left out.
func (w *writer) splice(s splice) {
	at, written := s.at, 0
	for i, l := range s.chunk.Lines {
		switch {
		case l.Op == Added:
			w.add(l.Text)
			written = i
		case at == s.at+s.old:
		case l.Op == Context:
			w.keep(at, at+1)
			at++
		default:
			at++
		}
	}
	if s.chunk.NoEnd && !w.open && s.chunk.Lines[written].Op == Added && !contextBehind(s.chunk.Lines[written+1:]) {
		w.out.Truncate(w.out.Len() - len(w.text.eol))
		w.open = true
	}
}

func contextBehind(lines []Line) bool {
	return slices.ContainsFunc(lines, func(l Line) bool { return l.Op == Context })
}
