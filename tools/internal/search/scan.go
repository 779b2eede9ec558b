package search

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
)

// outcome is what became of a file.
type outcome uint8

const (
	wasSearched outcome = iota
	wasBinary
	wasTooLarge
	wasUnreadable
	wasInterrupted
)

// A scanner searches one file after the other. Each worker has its own.
type scanner struct {
	*pattern
	dfa    *dfa
	blocks blocks
	large  *largeText
	stop   *atomic.Bool
}

// largeText is the one buffer for texts over blockBytes that are matched across
// lines. The workers take turns, so that memory does not grow with their number.
type largeText struct {
	sync.Mutex
	buf []byte
}

func newScanner(p *pattern, large *largeText, stop *atomic.Bool) *scanner {
	return &scanner{pattern: p, dfa: newDFA(p, stop), large: large, stop: stop}
}

// count returns the number of matching lines of f (multiline: of matches), at
// most 1 when one is enough.
func (s *scanner) count(f File, one bool) (n int, what outcome) {
	if s.multiline {
		return s.texts(f, one, func(span) bool { return one })
	}
	return s.lines(f, nil, func(span) bool { return one })
}

// A span is a part of a block of lines or a text: a line without its line feed,
// or a match.
type span struct {
	in         []byte
	start, end int
}

// lines calls visit for every matching line, and block, if not nil, with every
// block of lines when its matches are through, until one of them returns true.
func (s *scanner) lines(f File, block func([]byte) bool, visit func(span) bool) (n int, what outcome) {
	if s.blocks.open(f) != nil {
		return 0, wasUnreadable
	}
	if s.blocks.isBinary() {
		return 0, wasBinary
	}
	first := true
	for {
		if s.stop.Load() {
			return n, wasInterrupted
		}
		b, err := s.blocks.next()
		switch {
		case err != nil:
			return n, wasUnreadable
		case len(b) == 0:
			return n, wasSearched
		}
		if first {
			b, first = bytes.TrimPrefix(b, []byte(bom)), false
		}
		for from := 0; from < len(b); {
			start, end := s.nextLine(b, from)
			if start < 0 {
				break
			}
			if s.stop.Load() {
				return n, wasInterrupted
			}
			n++
			if visit(span{b, start, end}) {
				return n, wasSearched
			}
			from = end + 1
		}
		if block != nil && block(b) {
			return n, wasSearched
		}
	}
}

// nextLine returns the bounds, without line feed, of the first line of block
// that begins at or behind from and matches; start is -1 when there is none.
func (s *scanner) nextLine(block []byte, from int) (start, end int) {
	if s.finder == nil {
		i := s.dfa.find(block[from:])
		if i < 0 {
			return -1, 0
		}
		return lineAround(block, from, from+i)
	}
	for from < len(block) {
		i := s.finder.next(block, from)
		if i < 0 {
			break
		}
		start, end = lineAround(block, from, i)
		if s.exact || s.dfa.find(block[start:min(end+1, len(block))]) >= 0 {
			return start, end
		}
		from = end + 1
	}
	return -1, 0
}

// lineAround returns the bounds of the line that holds i, or that i is the line
// feed of; it begins at from at the earliest.
func lineAround(block []byte, from, i int) (start, end int) {
	start = from + bytes.LastIndexByte(block[from:i], '\n') + 1
	if n := bytes.IndexByte(block[i:], '\n'); n >= 0 {
		return start, i + n
	}
	return start, len(block)
}

// texts calls visit for every match of f as one text, until it returns true.
func (s *scanner) texts(f File, one bool, visit func(span) bool) (n int, what outcome) {
	if s.blocks.open(f) != nil {
		return 0, wasUnreadable
	}
	if s.blocks.isBinary() {
		return 0, wasBinary
	}
	text := s.blocks.buf[:s.blocks.have]
	if !s.blocks.eof {
		s.large.Lock()
		defer s.large.Unlock()
		var what outcome
		if text, what = s.readLarge(f, text); what != wasSearched {
			return 0, what
		}
	}
	text = dropReturns(bytes.TrimPrefix(text, []byte(bom)))
	if s.finder != nil && s.finder.next(text, 0) < 0 || s.dfa.find(text) < 0 {
		return 0, wasSearched
	}
	if s.stop.Load() {
		return 0, wasInterrupted
	}
	if one && !s.mayBeEmpty {
		return 1, wasSearched
	}
	return s.matches(text, visit)
}

// readLarge reads the rest of f behind head into the common buffer.
func (s *scanner) readLarge(f File, head []byte) ([]byte, outcome) {
	if s.large.buf == nil {
		s.large.buf = make([]byte, maxText+1)
	}
	buf := s.large.buf
	have := copy(buf, head)
	for have < len(buf) {
		if s.stop.Load() {
			return nil, wasInterrupted
		}
		n, err := f.Read(buf[have:min(have+maxLine, len(buf))])
		have += n
		if err == io.EOF {
			return buf[:have], wasSearched
		}
		if err != nil {
			return nil, wasUnreadable
		}
	}
	return nil, wasTooLarge
}

// dropReturns removes, in place, every CR before a line feed.
func dropReturns(text []byte) []byte {
	to := bytes.Index(text, []byte("\r\n"))
	if to < 0 {
		return text
	}
	for from := to; from < len(text); from++ {
		if text[from] == '\r' && from+1 < len(text) && text[from+1] == '\n' {
			continue
		}
		text[to] = text[from]
		to++
	}
	return text[:to]
}
