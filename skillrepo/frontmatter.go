package skillrepo

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

// A frame is how a SKILL.md divides, found without looking at its YAML.
type frame struct {
	yaml   string // between the fences: line ends are \n, valid UTF-8
	body   int    // offset of the first byte after the closing fence
	strict bool   // a strict reader finds it too: the file begins with ---, in valid UTF-8
}

// divide finds the front matter in the head of a file. whole tells that the head
// is all of the file; otherwise the front matter must close within it.
func divide(head []byte, whole bool, n *notes) (frame, error) {
	fr := frame{strict: bytes.HasPrefix(head, []byte("---"))}
	pos := 0
	if bytes.HasPrefix(head, []byte("\ufeff")) {
		n.warn("SKILL.md begins with a byte order mark")
		pos = len("\ufeff")
	}
	open, blank := -1, false
	for pos < len(head) {
		line, next := cutLine(head, pos)
		switch {
		case open < 0 && isBlank(line):
			blank = true
		case open < 0 && !isFence(line):
			return frame{}, errors.New("SKILL.md has no frontmatter: the first line is not ---")
		case open < 0:
			if blank {
				n.warn("SKILL.md has blank lines before its frontmatter")
			}
			open = next
		case isFence(line) && (whole || next < len(head)):
			return fr.close(head[open:pos], next, n)
		}
		pos = next
	}
	switch {
	case !whole:
		return frame{}, fmt.Errorf("the frontmatter of SKILL.md exceeds %d bytes", MaxFrontmatter)
	case open < 0:
		return frame{}, errors.New("SKILL.md has no frontmatter: it is blank")
	}
	return frame{}, errors.New("the frontmatter of SKILL.md is not closed with ---")
}

func (fr frame) close(raw []byte, body int, n *notes) (frame, error) {
	if len(raw) > MaxFrontmatter {
		return frame{}, fmt.Errorf("the frontmatter of SKILL.md exceeds %d bytes", MaxFrontmatter)
	}
	if !utf8.Valid(raw) {
		n.warn("the frontmatter of SKILL.md is not valid UTF-8")
		fr.strict = false
	}
	fr.yaml, fr.body = plainText(raw), body
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

// plainText makes every line end \n and every invalid byte U+FFFD.
func plainText(b []byte) string {
	return strings.ToValidUTF8(string(toLF(b)), "\ufffd")
}

func toLF(b []byte) []byte {
	if bytes.IndexByte(b, '\r') < 0 {
		return b
	}
	b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(b, []byte("\r"), []byte("\n"))
}
