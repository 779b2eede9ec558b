package search

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

const (
	shownBytes  = 500 // of a line
	bytesBefore = 100 // of them at most before a match
	cutMark     = "[...]"
)

// A shower prints the matches of a page with the lines around them.
type shower struct {
	*answer
	scanner *scanner
	stop    atomic.Bool // its own: the walk may have been stopped by its time
	context int

	path string
	skip int // matches to pass over
	left int // matches to print

	at     int // up to where the block was gone through,
	number int // and the number of the line that begins there
	shown  int // number of the last line printed of this file
	after  int // context lines to print
	before []contextLine
}

// A contextLine is a line that will be printed if a match follows closely.
type contextLine struct {
	number int
	text   []byte
}

func newShower(a *answer) *shower {
	s := &shower{answer: a, context: a.query.Context}
	s.scanner = newScanner(a.pattern, &a.large, &s.stop)
	return s
}

// show prints want matches of a file behind the first skip. It returns how many
// are left because the answer is full or time is up; a file that has changed
// since has none left.
func (s *shower) show(path string, skip, want int) (left int) {
	dir, file, err := s.tree.Open(path)
	if err != nil {
		return 0
	}
	if file == nil {
		dir.Close()
		return 0
	}
	defer file.Close()
	s.path, s.skip, s.left = EscapeName(path), skip, want
	s.at, s.number, s.shown, s.after, s.before = 0, 1, 0, 0, s.before[:0]
	if s.scanner.multiline {
		var text []byte
		s.scanner.texts(file, false, func(m span) bool {
			text = m.in
			return s.match(matchLines(m), m.start)
		})
		s.endBlock(text)
	} else {
		s.scanner.lines(file, s.endBlock, func(l span) bool { return s.match(l, -1) })
	}
	if s.out.Len() > maxAnswer || s.stop.Load() {
		return s.left
	}
	return 0
}

// matchLines returns the whole lines that a match touches.
func matchLines(m span) span {
	start, end := lineAround(m.in, 0, m.start)
	if m.end-1 > end {
		_, end = lineAround(m.in, 0, m.end-1)
	}
	return span{m.in, start, end}
}

// match takes the next match: lines are those it touches, col is where in the
// block it begins, -1 to look for it. It reports whether the page is complete.
func (s *shower) match(lines span, col int) bool {
	if s.skip > 0 {
		s.skip--
		return false
	}
	if s.left == 0 || s.out.Len() > maxAnswer {
		s.passTo(lines.in, min(lines.end+1, len(lines.in)))
		return s.after == 0
	}
	s.left--
	s.passTo(lines.in, lines.start)
	for _, c := range s.before {
		s.print(c.number, '-', c.text)
	}
	s.before = s.before[:0]
	for s.at <= lines.end && s.at < len(lines.in) {
		start := s.at
		text := s.nextLine(lines.in)
		s.print(s.number-1, ':', cutLine(text, s.column(text, start, col)))
	}
	s.after = s.context
	return s.left == 0 && s.context == 0
}

// column returns where in a line the match begins, 0 when it began above.
func (s *shower) column(text []byte, start, col int) int {
	switch {
	case len(text) <= shownBytes:
		return 0
	case col >= 0:
		return min(max(col-start, 0), len(text))
	}
	if at := s.scanner.re.FindIndex(text); at != nil {
		return at[0]
	}
	return 0
}

// passTo goes through the lines up to the offset to, none of which is printed
// as a match: they follow a match, or may come before one.
func (s *shower) passTo(block []byte, to int) {
	if s.context == 0 && s.at < to {
		s.number += bytes.Count(block[s.at:to], []byte("\n"))
		if block[to-1] != '\n' {
			s.number++
		}
		s.at = to
	}
	for s.at < to {
		text := s.nextLine(block)
		if s.after > 0 {
			s.after--
			s.print(s.number-1, '-', cutLine(text, 0))
			continue
		}
		s.keep(s.number-1, cutLine(text, 0))
	}
}

// keep stores a line in front of which at most context-1 others are stored.
func (s *shower) keep(number int, text []byte) {
	if len(s.before) == s.context {
		oldest := s.before[0]
		copy(s.before, s.before[1:])
		s.before[len(s.before)-1] = contextLine{number, append(oldest.text[:0], text...)}
		return
	}
	s.before = append(s.before, contextLine{number, bytes.Clone(text)})
}

// nextLine takes the line at s.at, without its end.
func (s *shower) nextLine(block []byte) []byte {
	text := block[s.at:]
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		text = bytes.TrimSuffix(text[:i], []byte("\r"))
		s.at += i + 1
	} else {
		s.at = len(block)
	}
	s.number++
	return text
}

// endBlock goes through the rest of a block and reports whether the page is
// complete.
func (s *shower) endBlock(block []byte) bool {
	s.passTo(block, len(block))
	s.at = 0
	return s.left == 0 && s.after == 0
}

// print writes a line of the answer, sep standing around its number.
func (s *shower) print(number int, sep byte, text []byte) {
	if s.out.Len() > 0 {
		s.out.WriteByte('\n')
		if s.context > 0 && (s.shown == 0 || number != s.shown+1) {
			s.out.WriteString("--\n")
		}
	}
	s.shown = number
	s.out.WriteString(s.path)
	s.out.WriteByte(sep)
	s.out.WriteString(strconv.Itoa(number))
	s.out.WriteByte(sep)
	s.out.Write(outcut.AppendValid(nil, text))
}

// cutLine returns what is shown of a line whose match begins at col, with a mark
// at each cut.
func cutLine(text []byte, col int) []byte {
	if len(text) <= shownBytes {
		return text
	}
	start := max(col-bytesBefore, 0)
	end := min(start+shownBytes, len(text))
	for start < col && !utf8.RuneStart(text[start]) {
		start++
	}
	for n := 0; n < utf8.UTFMax && end < len(text) && end > col && !utf8.RuneStart(text[end]); n++ {
		end--
	}
	var cut []byte
	if start > 0 {
		cut = append(cut, cutMark...)
	}
	cut = append(cut, text[start:end]...)
	if end < len(text) {
		cut = append(cut, cutMark...)
	}
	return cut
}
