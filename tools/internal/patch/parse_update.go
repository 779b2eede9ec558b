package patch

import (
	"cmp"
	"strings"
)

// A chunkReader gathers the chunks of one Update section.
type chunkReader struct {
	section *Section
	chunk   Chunk
	header  int  // line of the chunk's first header, 0 without one
	first   int  // line of its first line, 0 without one
	open    bool // a line may come: the first chunk, or a header was seen
	blanks  int  // empty lines at the end of chunk, so far
}

// updateBody reads the chunks of a section, up to the next section. Markers are
// trimmed at the right only here: an indented one is a line of the file.
func (p *parser) updateBody(s *Section) error {
	if p.more() {
		if to, ok := strings.CutPrefix(trimRight(p.lines[p.at]), moveTo); ok {
			s.MoveTo = strings.TrimSpace(to)
			p.at++
			if err := checkRelative(s.MoveTo); err != nil {
				return err
			}
		}
	}
	r := chunkReader{section: s, open: true}
	for ; p.more(); p.at++ {
		marker := trimRight(p.lines[p.at])
		if _, _, ok := sectionHeader(marker); ok {
			break
		}
		if marker == beginPatch || marker == endPatch {
			return notAHeader(p.at+1, marker)
		}
		if err := r.line(p.lines[p.at], marker, p.at+1); err != nil {
			return err
		}
	}
	return r.close()
}

// line takes the next line of the section; marker is line trimmed at the right.
func (r *chunkReader) line(line, marker string, n int) error {
	if strings.HasPrefix(marker, "@@ ") || marker == "@@" {
		r.at(strings.TrimPrefix(marker[2:], " "), n)
		return nil
	}
	if marker == endOfFile {
		return r.endOfFile(n)
	}
	if marker == "" && !r.open {
		return nil
	}
	if marker == "" && !strings.HasPrefix(line, " ") {
		line = "" // tabs alone
	}
	if !r.open || line != "" && !strings.ContainsRune(" -+", rune(line[0])) {
		return unexpectedLine(n, line)
	}
	r.content(line, n)
	return nil
}

// at takes a line that says where the next chunk is to be found.
func (r *chunkReader) at(text string, n int) {
	if len(r.chunk.Lines) > 0 {
		r.finish()
	}
	r.open = true
	r.header = cmp.Or(r.header, n)
	if text != "" {
		r.chunk.Headers = append(r.chunk.Headers, text)
	}
}

// content takes a line of the file; "" is an empty context line.
func (r *chunkReader) content(line string, n int) {
	r.first = cmp.Or(r.first, n)
	if line == "" {
		r.blanks++
		r.chunk.Lines = append(r.chunk.Lines, Line{Op: Context})
		return
	}
	r.blanks = 0
	r.chunk.Lines = append(r.chunk.Lines, Line{Op: Op(line[0]), Text: line[1:]})
}

func (r *chunkReader) endOfFile(n int) error {
	if !r.open {
		return unexpectedLine(n, endOfFile)
	}
	start := cmp.Or(r.header, r.first, n)
	r.chunk.EndOfFile = true
	if !r.finish() {
		return noLines(start)
	}
	r.open = false
	return nil
}

// finish puts the chunk to the section's. One that has only empty lines is
// none: its headers stay for the next chunk.
func (r *chunkReader) finish() bool {
	r.dropBlanks()
	if len(r.chunk.Lines) == 0 {
		r.first = 0
		return false
	}
	r.chunk.Line = cmp.Or(r.header, r.first)
	r.section.Chunks = append(r.section.Chunks, r.chunk)
	r.chunk, r.header, r.first = Chunk{}, 0, 0
	return true
}

// dropBlanks takes the empty lines off the end of a chunk that only adds: there
// they are space between chunks, not context.
func (r *chunkReader) dropBlanks() {
	kept := r.chunk.Lines[:len(r.chunk.Lines)-r.blanks]
	r.blanks = 0
	for _, l := range kept {
		if l.Op != Added {
			return
		}
	}
	r.chunk.Lines = kept
}

// close ends the section.
func (r *chunkReader) close() error {
	if !r.finish() && r.header > 0 {
		return noLines(r.header)
	}
	if s := r.section; len(s.Chunks) == 0 && s.MoveTo == "" {
		return emptyUpdate(s.Line, s.Path)
	}
	return nil
}
