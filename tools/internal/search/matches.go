package search

import (
	"io"
	"regexp"
	"sync/atomic"
	"unicode/utf8"
)

// matches calls visit for every match in text, each behind the one before, until
// visit returns true. An empty match right behind another does not count, nor
// does one behind the last line feed, where no line is.
func (s *scanner) matches(text []byte, visit func(span) bool) (n int, what outcome) {
	for from, last := 0, -1; from <= len(text); {
		start, end := s.matchFrom(text, from)
		if s.stop.Load() {
			return n, wasInterrupted
		}
		if start < 0 {
			break
		}
		empty := start == end
		noLine := empty && start == len(text) && (start == 0 || text[start-1] == '\n')
		if !(empty && start == last) && !noLine {
			n++
			if visit(span{text, start, end}) {
				break
			}
		}
		if from, last = end, end; empty {
			_, width := utf8.DecodeRune(text[end:])
			from += max(width, 1)
		}
	}
	return n, wasSearched
}

// matchFrom returns the leftmost match at or behind from, start -1 if there is
// none. It looks at what stands before from, as boundaries demand.
func (s *scanner) matchFrom(text []byte, from int) (start, end int) {
	if from == 0 {
		return s.locate(s.re, text, 0)
	}
	start, end = s.locate(s.reBehind, text[from-1:], 1)
	if start < 0 {
		return -1, 0
	}
	return start + from - 1, end + from - 1
}

// locate returns where a group of re matches first. A large text is read
// through a reader that ends early when the search is stopped.
func (s *scanner) locate(re *regexp.Regexp, text []byte, group int) (start, end int) {
	var at []int
	if len(text) <= blockBytes {
		at = re.FindSubmatchIndex(text)
	} else {
		at = re.FindReaderSubmatchIndex(&stoppable{text: text, stop: s.stop})
	}
	if at == nil {
		return -1, 0
	}
	return at[2*group], at[2*group+1]
}

// stoppable reads runes of a text until it ends or stop is set.
type stoppable struct {
	text []byte
	read int
	stop *atomic.Bool
}

func (r *stoppable) ReadRune() (rune, int, error) {
	r.read++
	if len(r.text) == 0 || r.read%4096 == 0 && r.stop.Load() {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRune(r.text)
	r.text = r.text[n:]
	return c, n, nil
}
