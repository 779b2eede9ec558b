package front

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of one SKILL.md, in bytes.
const (
	MaxFrontmatter = 65_536
	MaxBody        = 1_048_576
)

// A Frame is how a SKILL.md divides, found without looking at its YAML.
type Frame struct {
	YAML   string // between the fences: line ends are \n, valid UTF-8
	Body   int    // offset of the first byte after the closing fence
	Strict bool   // a strict reader finds it too: the file begins with ---, in valid UTF-8
}

// Divide finds the front matter in the head of a file. whole tells that the head
// is all of the file; otherwise the front matter must close within it.
func Divide(head []byte, whole bool, warn Warn) (Frame, error) {
	fr := Frame{Strict: bytes.HasPrefix(head, []byte("---"))}
	pos := 0
	if bytes.HasPrefix(head, []byte("\ufeff")) {
		warn("SKILL.md begins with a byte order mark")
		pos = len("\ufeff")
	}
	open, blank := -1, false
	for pos < len(head) {
		line, next := cutLine(head, pos)
		switch {
		case open < 0 && isBlank(line):
			blank = true
		case open < 0 && !isFence(line):
			return Frame{}, errors.New("SKILL.md has no frontmatter: the first line is not ---")
		case open < 0:
			if blank {
				warn("SKILL.md has blank lines before its frontmatter")
			}
			open = next
		case isFence(line) && (whole || next < len(head)):
			return fr.close(head[open:pos], next, warn)
		}
		pos = next
	}
	switch {
	case !whole:
		return Frame{}, fmt.Errorf("the frontmatter of SKILL.md exceeds %d bytes", MaxFrontmatter)
	case open < 0:
		return Frame{}, errors.New("SKILL.md has no frontmatter: it is blank")
	}
	return Frame{}, errors.New("the frontmatter of SKILL.md is not closed with ---")
}

func (fr Frame) close(raw []byte, body int, warn Warn) (Frame, error) {
	if len(raw) > MaxFrontmatter {
		return Frame{}, fmt.Errorf("the frontmatter of SKILL.md exceeds %d bytes", MaxFrontmatter)
	}
	if !utf8.Valid(raw) {
		warn("the frontmatter of SKILL.md is not valid UTF-8")
		fr.Strict = false
	}
	fr.YAML, fr.Body = PlainText(raw), body
	return fr, nil
}

// cutLine returns the line at pos without its end, and where the next one starts.
// A line ends with \n, \r\n or a lone \r.
func cutLine(b []byte, pos int) (line []byte, next int) {
	i := bytes.IndexAny(b[pos:], "\r\n")
	if i < 0 {
		return b[pos:], len(b)
	}
	end := pos + i
	if next = end + 1; b[end] == '\r' && next < len(b) && b[next] == '\n' {
		next++
	}
	return b[pos:end], next
}

func isBlank(line []byte) bool { return len(bytes.Trim(line, " \t")) == 0 }

func isFence(line []byte) bool { return string(bytes.TrimRight(line, " \t")) == "---" }

// PlainText makes every line end \n and every invalid byte U+FFFD.
func PlainText(b []byte) string {
	return strings.ToValidUTF8(string(ToLF(b)), "\ufffd")
}

// ToLF makes every line end \n.
func ToLF(b []byte) []byte {
	if bytes.IndexByte(b, '\r') < 0 {
		return b
	}
	b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(b, []byte("\r"), []byte("\n"))
}
