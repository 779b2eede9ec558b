package patch

import "bytes"

// bom is the byte order mark that some editors put before UTF-8.
var bom = []byte("\uFEFF")

// A text is the content of a file, split where its lines begin. It keeps every
// byte: nothing is decoded.
type text struct {
	bom    []byte   // as found, or nil
	data   []byte   // what follows it
	starts []uint32 // where each line begins in data, and len(data) at the end
	eol    string   // the end of the first line that has one, else LF
}

// splitLines splits data after each LF, CRLF and lone CR. ok is false when there
// are more than MaxLines.
func splitLines(data []byte) (t *text, ok bool) {
	t = &text{data: data}
	if bytes.HasPrefix(data, bom) {
		t.bom, t.data = data[:len(bom)], data[len(bom):]
	}
	t.starts = append(make([]uint32, 0, len(t.data)/40+2), 0)
	lf, cr := next(t.data, 0, '\n'), next(t.data, 0, '\r')
	for lf < len(t.data) || cr < len(t.data) {
		end := min(lf, cr) + 1
		if cr+1 == lf && lf < len(t.data) {
			end = lf + 1
		}
		t.starts = append(t.starts, uint32(end))
		if len(t.starts) > MaxLines+1 {
			return nil, false
		}
		if lf < end {
			lf = next(t.data, end, '\n')
		}
		if cr < end {
			cr = next(t.data, end, '\r')
		}
	}
	if t.starts[len(t.starts)-1] < uint32(len(t.data)) {
		t.starts = append(t.starts, uint32(len(t.data)))
	}
	t.eol = "\n"
	if t.lines() > 0 && t.end(0) != "" {
		t.eol = t.end(0)
	}
	return t, true
}

// next is where c is found in data from i on, len(data) when it is not.
func next(data []byte, i int, c byte) int {
	if j := bytes.IndexByte(data[i:], c); j >= 0 {
		return i + j
	}
	return len(data)
}

// lines is the number of lines.
func (t *text) lines() int { return len(t.starts) - 1 }

// raw is the lines from i to j-1 with their ends.
func (t *text) raw(i, j int) []byte { return t.data[t.starts[i]:t.starts[j]] }

// line is line i without its end.
func (t *text) line(i int) []byte {
	raw := t.raw(i, i+1)
	return raw[:len(raw)-len(t.end(i))]
}

// end is the end of line i: LF, CRLF, CR or, for the last one, nothing.
func (t *text) end(i int) string {
	raw := t.raw(i, i+1)
	switch n := len(raw); {
	case n > 1 && raw[n-2] == '\r' && raw[n-1] == '\n':
		return "\r\n"
	case n > 0 && raw[n-1] == '\n':
		return "\n"
	case n > 0 && raw[n-1] == '\r':
		return "\r"
	}
	return ""
}

// unterminated tells whether the last line lacks its end.
func (t *text) unterminated() bool { return t.lines() > 0 && t.end(t.lines()-1) == "" }
