package textedit

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/tools/internal/alike"
)

// A Difference is what keeps a text from matching.
type Difference int

// What may be different.
const (
	Unknown    Difference = iota
	WhiteSpace            // blanks, tabs or line breaks
	Case                  // capital and small letters
	Both                  // white space and case
	Similar               // only the look of a line
)

// A NoMatchError says that a text does not occur.
type NoMatchError struct {
	Differs Difference // what is different at the nearest place
	Line    int        // the line where that place begins, from 1; 0 when there is none
}

func (e *NoMatchError) Error() string { return "the text does not occur" }

// Hint says where a text stands that differs little, and how it differs.
func (e *NoMatchError) Hint() string {
	var what string
	switch e.Differs {
	case WhiteSpace:
		what = "A text that differs only in white space"
	case Case:
		what = "A text that differs only in upper and lower case"
	case Both:
		what = "A text that differs only in white space and case"
	case Similar:
		what = "The most similar line"
	default:
		return "Read the file again and copy the text as it is."
	}
	return fmt.Sprintf("%s is at line %d; read it again and copy it as it is.", what, e.Line)
}

// explain finds out why oldText is not in data. Each try takes one pass.
func explain(data []byte, oldText string) error {
	wanted := []byte(oldText)
	if line := find(squeeze(data), squeeze(wanted)); line > 0 {
		return &NoMatchError{WhiteSpace, line}
	}
	data, wanted = bytes.ToLower(data), bytes.ToLower(wanted)
	if line := find(squeezed{text: bytes.ReplaceAll(data, crlf, lf)}, squeezed{text: wanted}); line > 0 {
		return &NoMatchError{Case, line}
	}
	if line := find(squeeze(data), squeeze(wanted)); line > 0 {
		return &NoMatchError{Both, line}
	}
	if line := mostSimilar(data, wanted); line > 0 {
		return &NoMatchError{Similar, line}
	}
	return &NoMatchError{}
}

// A squeezed text has lost its white space.
type squeezed struct {
	text  []byte
	lines []int // how many bytes of text come up to the end of each line; nil: text has its line feeds
}

func squeeze(data []byte) squeezed {
	s := squeezed{text: make([]byte, 0, len(data)), lines: []int{}}
	for _, r := range string(data) {
		switch {
		case r == '\n':
			s.lines = append(s.lines, len(s.text))
		case !unicode.IsSpace(r):
			s.text = utf8.AppendRune(s.text, r)
		}
	}
	return s
}

// find is the line on which wanted begins in s, 0 when it is nowhere.
func find(s, wanted squeezed) int {
	at := bytes.Index(s.text, wanted.text)
	switch {
	case at < 0 || len(wanted.text) == 0:
		return 0
	case s.lines == nil:
		return bytes.Count(s.text[:at], lf) + 1
	}
	line := 1
	for _, end := range s.lines {
		if end > at {
			break
		}
		line++
	}
	return line
}

// mostSimilar is the line of data that looks most like the first line of wanted
// that is not blank, 0 when none is half alike.
func mostSimilar(data, wanted []byte) int {
	first, _, _ := strings.Cut(strings.TrimSpace(string(wanted)), "\n")
	pattern := alike.New(strings.TrimSpace(first))
	best, bestLine := 0.5, 0
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if l := pattern.Likeness(bytes.TrimSpace(line), best); l > best || l == best && bestLine == 0 {
			best, bestLine = l, n
		}
	}
	return bestLine
}
