package textedit

import "io"

// A Slice is a range of the pieces between the LFs of a file. The piece behind
// the last LF counts, so an empty file has one.
type Slice struct {
	Content    string // the pieces, joined by LF; CR and BOM are content
	From, To   int64  // as given, or 0 and the number of pieces; when cut, what Content really holds
	Cut        bool   // not all of the range fitted
	TotalLines int64  // when cut: the number of pieces
	LongLine   int64  // bytes of the first piece, when even that did not fit; else 0
}

// ReadSlice reads the pieces from `from` to before `to`, counted from 0; below 0
// they count from the end, beyond the ends they are clamped, nil means the first
// and behind the last. Content has at most budget bytes: when the range has more,
// whole pieces are kept as long as they fit, and of a first piece that does not
// fit alone the beginning. r has size bytes; NUL near its beginning is a
// *NotTextError.
func ReadSlice(r io.ReaderAt, size int64, from, to *int64, budget int) (Slice, error) {
	r, _, err := openText(r, size)
	if err != nil {
		return Slice{}, err
	}
	s := slicer{x: newIndex(r, size, onlyLF)}
	asked, err := s.ask(from, to)
	if err != nil {
		return Slice{}, err
	}
	start, count, err := s.resolve(asked.From, asked.To)
	if err != nil || count <= 0 {
		return asked, err
	}
	return s.read(asked, start, count, budget)
}

// A slicer reads one slice.
type slicer struct{ x *index }

// total is the number of pieces.
func (s slicer) total() (int64, error) {
	n, err := s.x.allEnds()
	return n + 1, err
}

// ask fills in what was left out.
func (s slicer) ask(from, to *int64) (asked Slice, err error) {
	if from != nil {
		asked.From = *from
	}
	if to != nil {
		asked.To = *to
		return asked, nil
	}
	asked.To, err = s.total()
	return asked, err
}

// resolve finds where in the file a range begins and how many pieces it has at
// most. Only what has to be read for that is read.
func (s slicer) resolve(from, to int64) (start, count int64, err error) {
	if from < 0 && to < 0 {
		if from >= to {
			return 0, 0, nil
		}
		start, pieces, err := s.x.fromEnd(-from)
		return start, pieces + to, err
	}
	if from < 0 || to < 0 {
		n, err := s.total()
		if err != nil {
			return 0, 0, err
		}
		from, to = clamp(from, n), clamp(to, n)
	}
	if from >= to {
		return 0, 0, nil
	}
	start, ok, err := s.x.offset(from)
	if !ok {
		return 0, 0, err
	}
	return start, to - from, nil
}

// clamp makes a place that may count from the end one that counts from the start.
func clamp(i, n int64) int64 {
	if i < 0 {
		return max(n+i, 0)
	}
	return min(i, n)
}

// read reads count pieces from start on, or as many as there are.
func (s slicer) read(asked Slice, start, count int64, budget int) (Slice, error) {
	l := newLineReader(s.x, start)
	defer l.close()
	var content []byte
	for n := int64(0); n < count; n++ {
		kept := len(content)
		if n > 0 {
			content = append(content, '\n')
		}
		more, ln, _, err := l.next(content, budget-len(content))
		if err != nil {
			return Slice{}, err
		}
		if !ln.whole || len(more) > budget {
			if n > 0 {
				more = more[:kept]
			}
			return s.cut(asked, start, string(more), n, ln.size)
		}
		content = more
		if ln.end == "" {
			break // the piece behind the last LF
		}
	}
	asked.Content = string(content)
	return asked, nil
}

// cut describes a slice of which only n pieces fitted, or the beginning of the
// first one, which has size bytes.
func (s slicer) cut(asked Slice, start int64, content string, n, size int64) (Slice, error) {
	out := Slice{Content: content, Cut: true}
	total, err := s.total()
	if err != nil {
		return out, err
	}
	if n == 0 {
		n, out.LongLine = 1, size
	}
	out.TotalLines = total
	out.From, out.To = asked.From, 0
	if out.From < 0 {
		out.From = clamp(out.From, total)
	}
	out.To = out.From + n
	return out, nil
}
