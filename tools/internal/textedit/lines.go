package textedit

import (
	"bytes"
	"strings"
)

// maxGap is how many missing lines are added before lines are inserted there. A
// larger gap means "behind the last line".
const maxGap = 1000

// An Edit is a text in which lines were inserted or replaced.
type Edit struct {
	Data     []byte // the new text
	Lines    int64  // lines in what was put there
	Start    int64  // the line, from 1, where it was put
	End      int64  // the last line of the old text that was replaced; Start when there was none
	Replaced int64  // how many lines were replaced
}

// InsertLines puts text before line start of data, counted from 1. Where start
// leaves a gap of up to 1,000 lines behind the last line, empty lines fill it; a
// larger one means the line behind the last. A line break is added only where
// lines would run together. Empty text changes nothing. NUL near the beginning of
// data is a *NotTextError. A start below 1 counts as 1.
func InsertLines(data []byte, text string, start int64) (Edit, error) {
	if err := checkHead(data); err != nil {
		return Edit{}, err
	}
	start, fill := resolveGap(start, countLines(data))
	e := Edit{Data: data, Lines: countLines(text), Start: start, End: start}
	if text != "" {
		at := lineOffset(data, start-1)
		e.Data = join(data, at, at, fill, text)
	}
	return e, nil
}

// ReplaceLines puts text in place of the lines from start to end of data, counted
// from 1; an end behind the last line means the last line. It is otherwise like
// InsertLines: also where there is no line start, and nothing is replaced. Empty
// text deletes the lines.
func ReplaceLines(data []byte, text string, start, end int64) (Edit, error) {
	start = max(start, 1)
	n := countLines(data)
	if start > n || end < start {
		return InsertLines(data, text, start)
	}
	if err := checkHead(data); err != nil {
		return Edit{}, err
	}
	end = min(end, n)
	e := Edit{Lines: countLines(text), Start: start, End: end, Replaced: end - start + 1}
	from := lineOffset(data, start-1)
	e.Data = join(data, from, from+lineOffset(data[from:], e.Replaced), 0, text)
	return e, nil
}

// resolveGap says where start is in a text of n lines, and how many empty lines
// are needed before it.
func resolveGap(start, n int64) (line, fill int64) {
	start = max(start, 1)
	gap := max(start-n-1, 0)
	if gap > maxGap {
		return n + 1, 0
	}
	return start, gap
}

// join puts text in place of data[from:to], with fill empty lines before it.
func join(data []byte, from, to int, fill int64, text string) []byte {
	eol := lineBreak(data)
	var out bytes.Buffer
	out.Grow(len(data) + len(text) + (int(fill)+2)*len(eol))
	out.Write(data[:from])
	if from > 0 && data[from-1] != '\n' {
		out.WriteString(eol)
	}
	out.WriteString(strings.Repeat(eol, int(fill)))
	out.WriteString(text)
	if to < len(data) && text != "" && !strings.HasSuffix(text, "\n") {
		out.WriteString(eol)
	}
	out.Write(data[to:])
	return out.Bytes()
}

// lineOffset is where the line behind n line feeds begins, len(data) when there
// are fewer.
func lineOffset(data []byte, n int64) int {
	at := 0
	for ; n > 0 && at < len(data); n-- {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			return len(data)
		}
		at += i + 1
	}
	return at
}

var (
	lf   = []byte("\n")
	crlf = []byte("\r\n")
)

// lineBreak is what ends lines in data: CRLF when more than half of its line
// breaks are CRLF, else LF.
func lineBreak(data []byte) string {
	if 2*bytes.Count(data, crlf) > bytes.Count(data, lf) {
		return "\r\n"
	}
	return "\n"
}

// countLines is how many lines data has; what follows the last LF is a line
// unless it is empty.
func countLines[T string | []byte](data T) int64 {
	n := int64(bytes.Count([]byte(data), lf))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}
