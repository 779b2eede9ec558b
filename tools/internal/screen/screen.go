package screen

import (
	"strings"
	"unicode/utf8"
)

// Text is what a terminal would have shown of b, every line ended by a line feed as
// it was. What is not UTF-8 becomes U+FFFD.
func Text(b []byte) string { return text(b, false) }

// Coloured is Text with the colours that the text had, and with bold, faint, italic,
// underlined and reversed letters: each line begins without any, and where they change
// stands one SGR sequence, which says all that is to be from there on.
func Coloured(b []byte) string { return text(b, true) }

func text(b []byte, coloured bool) string {
	s := screen{blanks: 4*len(b) + widest, coloured: coloured}
	s.out.Grow(len(b))
	for len(b) > 0 {
		seq, n := next(b)
		s.put(seq)
		b = b[n:]
	}
	s.flush()
	return s.out.String()
}

// Held is how many bytes at the end of b begin a character or a control sequence
// whose rest has not come. What is longer than sequences are is none.
func Held(b []byte) int {
	b = b[max(len(b)-longest, 0):]
	for i := 0; i < len(b); i++ {
		if b[i] != esc {
			continue
		}
		_, n, whole := sequence(b[i:])
		if !whole {
			return len(b) - i
		}
		i += n - 1
	}
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				break
			}
			return n
		}
	}
	return 0
}

// longest is how far a sequence is waited for.
const longest = 256

// widest bounds where the cursor of a line is moved and how far lines are edited:
// terminals are narrower, and the work stays small.
const widest = 1024

// A cell is one character of a line.
type cell struct {
	char rune
	look look
}

var blank = cell{char: ' '}

// A screen is the line that is being written.
type screen struct {
	out  strings.Builder
	line []cell
	at   int  // the cursor
	look look // of what is written next, where that is wanted

	coloured bool

	blanks int // that may still be filled in, so that little cannot become much
}

// put does what one character or control sequence says.
func (s *screen) put(q piece) {
	switch {
	case q.final != 0:
		s.control(q)
	case q.char == '\n' || q.char == '\v' || q.char == '\f':
		s.end()
	case q.char == '\r':
		s.at = 0
	case q.char == '\b':
		s.at = max(s.at-1, 0)
	case q.char == '\t' || q.char >= ' ' && q.char != 0x7f && (q.char < 0x80 || q.char >= 0xa0):
		s.write(q.char)
	}
}

func (s *screen) write(r rune) {
	s.reach()
	if s.at < len(s.line) {
		s.line[s.at] = cell{r, s.look}
	} else {
		s.line = append(s.line, cell{r, s.look})
	}
	s.at++
}

// reach fills the line up to the cursor.
func (s *screen) reach() {
	if missing := s.at - len(s.line); missing > s.blanks {
		s.at = len(s.line)
	}
	for len(s.line) < s.at {
		s.line = append(s.line, blank)
		s.blanks--
	}
}

// end ends the line.
func (s *screen) end() {
	s.flush()
	s.out.WriteByte('\n')
}

func (s *screen) flush() {
	var now look
	for _, c := range s.line {
		if c.look != now {
			now = c.look
			s.out.WriteString(now.sequence())
		}
		s.out.WriteRune(c.char)
	}
	if now != (look{}) {
		s.out.WriteString(look{}.sequence())
	}
	s.line, s.at = s.line[:0], 0
}

// leave ends a line that the cursor leaves for another one.
func (s *screen) leave() {
	if len(s.line) == 0 {
		return
	}
	for len(s.line) > 0 && s.line[len(s.line)-1].char == ' ' { // full-screen programs fill lines
		s.line = s.line[:len(s.line)-1]
	}
	s.end()
}

// control does what a control sequence says, as far as it concerns one line.
func (s *screen) control(q piece) {
	n := min(max(q.first, 1), widest)
	switch q.final {
	case 'm':
		if s.coloured {
			s.look = s.look.after(q.params)
		}
	case 'C', 'a':
		s.at = max(s.at, min(s.at+n, widest))
	case 'D':
		s.at = max(s.at-n, 0)
	case 'G', '`':
		s.at = n - 1
	case 'K':
		s.erase(q.first)
	case 'J':
		if q.first >= 2 {
			s.leave()
		} else {
			s.erase(q.first)
		}
	case 'P', '@', 'X':
		s.edit(q.final, n)
	case 'H', 'f', 'd', 'A', 'B', 'E', 'F':
		s.leave()
		if q.final == 'H' || q.final == 'f' {
			s.at = min(max(q.second, 1), widest) - 1
		}
	}
}

// erase removes what stands behind the cursor (0), before it (1), or all (2).
func (s *screen) erase(how int) {
	switch how {
	case 0:
		s.line = s.line[:min(s.at, len(s.line))]
	case 1:
		for i := range min(s.at+1, len(s.line), widest) {
			s.line[i] = blank
		}
	case 2:
		s.line = s.line[:0]
	}
}

// edit deletes, inserts or blanks characters at the cursor.
func (s *screen) edit(how byte, n int) {
	if len(s.line) > widest || s.at >= len(s.line) {
		return
	}
	rest := len(s.line) - s.at
	if how == '@' {
		n = min(n, s.blanks)
		s.blanks -= n
	}
	switch n = min(n, rest); how {
	case 'P':
		s.line = append(s.line[:s.at], s.line[s.at+n:]...)
	case '@':
		for range n {
			s.line = append(s.line, blank)
		}
		copy(s.line[s.at+n:], s.line[s.at:])
		fallthrough
	case 'X':
		for i := range n {
			s.line[s.at+i] = blank
		}
	}
}
