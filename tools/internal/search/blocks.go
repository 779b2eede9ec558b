package search

import (
	"bytes"
	"errors"
	"io"
)

const (
	blockBytes  = 128 << 10 // what is read at once: most files whole, and it fits the cache
	maxLine     = 1 << 20   // of a longer line only this much is searched
	maxText     = 16 << 20  // the largest file that is matched across lines
	binaryBytes = 8192      // where a NUL makes a file binary
	bom         = "\ufeff"
)

// blocks reads a file as pieces of whole lines, in a buffer that is used again
// for the next file.
type blocks struct {
	file File
	buf  []byte // as large as the longest line needs
	used int    // bytes of buf that were handed out
	have int    // bytes of buf that are filled
	eof  bool
	skip bool // the rest of a line that is too long is to be left out
}

// open begins a file. Its first bytes are at hand as head afterwards.
func (b *blocks) open(f File) error {
	if b.buf == nil {
		b.buf = make([]byte, blockBytes)
	}
	*b = blocks{file: f, buf: b.buf}
	return b.fill()
}

// isBinary reports whether the file, of which nothing was handed out, is binary.
func (b *blocks) isBinary() bool {
	return bytes.IndexByte(b.buf[:min(b.have, binaryBytes)], 0) >= 0
}

// fill reads until the buffer is full or the file at its end.
func (b *blocks) fill() error {
	for b.have < len(b.buf) && !b.eof {
		n, err := b.file.Read(b.buf[b.have:])
		b.have += n
		switch {
		case errors.Is(err, io.EOF):
			b.eof = true
		case err != nil:
			return err
		}
	}
	return nil
}

// next returns the next lines, with their line feeds; the last one of the file
// and one that was cut may lack it. It returns nothing at the end.
func (b *blocks) next() ([]byte, error) {
	for {
		b.have = copy(b.buf, b.buf[b.used:b.have])
		b.used = 0
		if err := b.fill(); err != nil {
			return nil, err
		}
		last := bytes.LastIndexByte(b.buf[:b.have], '\n')
		switch {
		case b.skip:
			first := bytes.IndexByte(b.buf[:b.have], '\n')
			b.skip = first < 0 && !b.eof
			if b.used = first + 1; first < 0 {
				b.used = b.have
			}
			continue
		case b.eof:
			b.used = b.have
		case last >= 0:
			b.used = last + 1
		case len(b.buf) < maxLine:
			b.buf = append(b.buf, make([]byte, len(b.buf))...)
			continue
		default:
			b.used, b.skip = b.have, true
		}
		return b.buf[:b.used], nil
	}
}
