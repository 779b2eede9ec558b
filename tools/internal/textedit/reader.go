package textedit

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

// A lineReader reads one line after the other, from any place of a file.
type lineReader struct {
	r    io.ReaderAt
	off  int64 // where the file is read next
	size int64
	ends ends
	buf  *[blockBytes + 1]byte
	data []byte // what was read and not yet taken
	lf   int    // where the next LF is in data, or len(data)
}

// newLineReader reads from off on. It has to be closed.
func newLineReader(x *index, off int64) *lineReader {
	return &lineReader{r: x.r, off: off, size: x.size, ends: x.ends, buf: blocks.Get().(*[blockBytes + 1]byte)}
}

func (l *lineReader) close() { blocks.Put(l.buf) }

// A line is one line as it was read, valid UTF-8.
type line struct {
	size  int64 // bytes of the whole line, without its end
	end   string
	whole bool // all of it was appended
}

// next appends the next line to dst, without its end and at most limit bytes of
// it. ok is false behind the last line; what follows the last line end is a line
// unless it is empty.
func (l *lineReader) next(dst []byte, limit int) (out []byte, ln line, ok bool, err error) {
	ln.whole = true
	for {
		piece, end, err := l.piece()
		if err != nil || piece == nil {
			return dst, ln, ok, err
		}
		ok = true
		dst = ln.take(dst, piece, &limit)
		if end != "" {
			ln.end = end
			return dst, ln, true, nil
		}
	}
}

// take appends as much of piece as the limit allows, and counts the rest.
func (ln *line) take(dst, piece []byte, limit *int) []byte {
	if !utf8.Valid(piece) {
		piece = outcut.AppendValid(nil, piece)
	}
	ln.size += int64(len(piece))
	if !ln.whole {
		return dst
	}
	fits := outcut.Prefix(piece, *limit)
	*limit -= len(fits)
	ln.whole = len(fits) == len(piece)
	return append(dst, fits...)
}

// piece takes the next part of a line, and its end if that was reached. Parts do
// not end within a character. nil is the end of the file.
func (l *lineReader) piece() (piece []byte, end string, err error) {
	for {
		if n, width := l.find(); width > 0 {
			piece, end = l.data[:n], string(l.data[n:n+width])
			l.drop(n + width)
			return piece, end, nil
		}
		if keep := l.unfinished(); keep < len(l.data) {
			piece = l.data[:len(l.data)-keep]
			l.drop(len(piece))
			return piece, "", nil
		}
		if l.off >= l.size {
			return nil, "", nil
		}
		if err := l.fill(); err != nil {
			return nil, "", err
		}
	}
}

// drop takes n bytes off the data.
func (l *lineReader) drop(n int) {
	l.data = l.data[n:]
	if l.lf -= n; l.lf < 0 {
		l.findLF()
	}
}

func (l *lineReader) findLF() {
	if l.lf = bytes.IndexByte(l.data, '\n'); l.lf < 0 {
		l.lf = len(l.data)
	}
}

// find looks for the end of the line in the data: where it is and how many bytes
// it has, 0 when it is not there.
func (l *lineReader) find() (at, width int) {
	if l.ends == anyEnd {
		if i := bytes.IndexByte(l.data[:l.lf], '\r'); i >= 0 {
			switch {
			case i+1 < len(l.data) && l.data[i+1] == '\n':
				return i, 2
			case i+1 < len(l.data) || l.off >= l.size:
				return i, 1
			default:
				return 0, 0 // it depends on what comes
			}
		}
	}
	if l.lf < len(l.data) {
		return l.lf, 1
	}
	return 0, 0
}

// unfinished is how many bytes at the end of the data cannot be judged before
// more is read: a CR, the beginning of a character.
func (l *lineReader) unfinished() int {
	n := len(l.data)
	if l.off >= l.size {
		return 0
	}
	if l.ends == anyEnd && n > 0 && l.data[n-1] == '\r' {
		return 1
	}
	for k := 1; k <= min(n, utf8.UTFMax-1); k++ {
		if c := l.data[n-k]; utf8.RuneStart(c) {
			if !utf8.FullRune(l.data[n-k:]) {
				return k
			}
			break
		}
	}
	return 0
}

// fill reads on behind the data.
func (l *lineReader) fill() error {
	n := copy(l.buf[:], l.data)
	m, err := readAt(l.r, l.buf[n:min(int64(blockBytes), int64(n)+l.size-l.off)], l.off)
	if err != nil {
		return err
	}
	l.off += int64(m)
	if m == 0 {
		l.size = l.off // the file has become shorter
	}
	l.data = l.buf[:n+m]
	l.findLF()
	return nil
}
