package textedit

import (
	"fmt"
	"io"
	"math"

	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

// All is the limit of a window that goes to the end of the file.
const All = math.MaxInt64

// A Window is a range of the lines of a file. A line ends with LF, which belongs
// to it; the rest behind the last LF is a line unless it is empty.
type Window struct {
	Content    string // the lines with their ends
	TotalLines int64
	LinesRead  int64
	Offset     int64 // the first line, from 1; as given when there is no such line
	Truncated  bool  // the budget did not allow all of it
	NextOffset int64 // when truncated: where to go on
	LongLine   int64 // bytes of the first line, when even that did not fit; else 0
}

// ReadWindow reads limit lines from line offset on, counted from 1; 0 counts as
// 1, and -n means the last n lines. With numbers each line is preceded by its
// number, right-aligned to six places, and a tab. Content has at most budget
// bytes: whole lines, or the beginning of a first line that does not fit, without
// its LF. r has size bytes; NUL near its beginning is a *NotTextError.
func ReadWindow(r io.ReaderAt, size, offset, limit int64, numbers bool, budget int) (Window, error) {
	r, _, err := openText(r, size)
	if err != nil {
		return Window{}, err
	}
	x := newIndex(r, size, onlyLF)
	total, err := x.lines()
	if err != nil {
		return Window{}, err
	}
	w := Window{TotalLines: total, Offset: max(offset, 1)}
	if offset < 0 {
		w.Offset = max(total+offset+1, 1)
	}
	if w.Offset > total || limit <= 0 {
		return w, nil
	}
	start, ok, err := x.offset(w.Offset - 1)
	if !ok {
		return w, err
	}
	l := newLineReader(x, start)
	defer l.close()
	return w, w.read(l, limit, numbers, budget)
}

// read fills the window.
func (w *Window) read(l *lineReader, limit int64, numbers bool, budget int) error {
	var content []byte
	for ; w.LinesRead < limit; w.LinesRead++ {
		kept := len(content)
		if numbers {
			content = fmt.Appendf(content, "%6d\t", w.Offset+w.LinesRead)
		}
		more, ln, ok, err := l.next(content, budget-len(content))
		if err != nil {
			return err
		}
		if !ok {
			content = content[:kept]
			break
		}
		if content = append(more, ln.end...); !ln.whole || len(content) > budget {
			w.truncate(len(more), kept, budget, &content, ln)
			break
		}
	}
	w.Content = string(content)
	return nil
}

// truncate ends the window before a line that does not fit. The first line is
// kept as far as it does.
func (w *Window) truncate(withoutEnd, kept, budget int, content *[]byte, ln line) {
	w.Truncated = true
	if w.LinesRead == 0 {
		w.LinesRead, w.LongLine, kept = 1, ln.size, withoutEnd
	}
	*content = outcut.Prefix((*content)[:kept], budget)
	w.NextOffset = w.Offset + w.LinesRead
}
