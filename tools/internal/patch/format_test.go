package patch

import (
	"slices"
	"strings"
)

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
