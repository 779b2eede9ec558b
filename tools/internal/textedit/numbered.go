package textedit

import (
	"fmt"
	"io"
	"strings"

	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

// ReadNumbered reads limit lines from line offset on, counted from 1, as text
// with a number before each line, and says below it how many lines follow. Lines
// end with LF, CRLF or a lone CR, which are not shown, nor is a BOM; a line of
// more than outcut.LineBytes is cut. A text of more than maxBytes is cut in the
// middle. r has size bytes; NUL near its beginning is a *NotTextError, an offset
// behind the last line a *PastEndError.
func ReadNumbered(r io.ReaderAt, size, offset, limit int64, maxBytes int) (string, error) {
	r, bom, err := openText(r, size)
	if err != nil {
		return "", err
	}
	if bom {
		skip := int64(len(utf8BOM))
		r, size = io.NewSectionReader(r, skip, size-skip), size-skip
	}
	offset = max(offset, 1)
	if size == 0 && offset == 1 {
		return "(empty file)", nil
	}
	x := newIndex(r, size, anyEnd)
	start, ok, err := x.offset(offset - 1)
	if err != nil {
		return "", err
	}
	if !ok || start >= size {
		lines, err := x.lines()
		if err == nil {
			err = &PastEndError{Offset: offset, Lines: lines}
		}
		return "", err
	}
	return numbered(x, start, offset, max(limit, 1), maxBytes)
}

// numbered writes the text. What is cut in its middle is never held.
func numbered(x *index, start, offset, limit int64, maxBytes int) (string, error) {
	text := outcut.NewCollector(maxBytes)
	l := newLineReader(x, start)
	defer l.close()
	var buf []byte
	n := int64(0)
	for ; n < limit; n++ {
		buf = buf[:0]
		if n > 0 {
			buf = append(buf, '\n')
		}
		buf = fmt.Appendf(buf, "L%d: ", offset+n)
		prefix := len(buf)
		out, ln, ok, err := l.next(buf, outcut.LineBytes)
		if err != nil {
			return "", err
		}
		if !ok {
			break
		}
		if !ln.whole {
			out = append(out, outcut.Rest(ln.size-int64(len(out)-prefix))...)
		}
		text.Write(out)
		buf = out
	}
	if err := more(text, x, l, offset+n); err != nil {
		return "", err
	}
	return text.Text().Cut(maxBytes, goOn(offset, n)), nil
}

// more says how many lines follow, from line next on.
func more(text *outcut.Collector, x *index, l *lineReader, next int64) error {
	if _, _, ok, err := l.next(nil, 0); err != nil || !ok {
		return err
	}
	lines, err := x.lines()
	if err == nil {
		_, err = fmt.Fprintf(text, "\n\n[... %d more lines, next offset %d ...]", lines-next+1, next)
	}
	return err
}

// goOn names the first line that the head of a cut text does not hold as a whole.
// The text has n lines.
func goOn(offset, n int64) outcut.Way {
	return func(head string, wholeLines bool) string {
		lines := int64(strings.Count(head, "\n"))
		if wholeLines {
			lines++
		}
		return fmt.Sprintf("continue with offset %d", offset+min(lines, n))
	}
}
