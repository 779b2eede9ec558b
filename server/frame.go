package server

import (
	"bufio"
	"bytes"
	"io"
)

// maxMessage bounds a message in either direction, in bytes: clients drop the
// connection at 10 MiB.
const maxMessage = 8 << 20

var byteOrderMark = []byte("\xEF\xBB\xBF")

const blanks = " \t\r\n"

// An oversize is what is kept of a message beyond maxMessage.
type oversize struct {
	size       int64 // of the whole message, without the blanks around it
	head, tail []byte
}

// A lineReader hands over one message per line: LF or CRLF, a byte order mark
// and blanks around it are dropped, the last line needs no line end.
type lineReader struct {
	in *bufio.Reader
}

func newLineReader(in io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 64<<10)}
}

// next returns the next message, empty for a blank line, or what is left of
// one that is too long. The bytes are valid until the next call.
func (r *lineReader) next() ([]byte, *oversize, error) {
	chunk, err := r.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		return r.long(chunk)
	}
	if err != nil && (err != io.EOF || len(chunk) == 0) {
		return nil, nil, err
	}
	return trimMessage(chunk), nil, nil
}

// long reads on when a line is longer than the buffer.
func (r *lineReader) long(chunk []byte) ([]byte, *oversize, error) {
	var f frame
	f.add(chunk)
	for {
		chunk, err := r.in.ReadSlice('\n')
		f.add(chunk)
		switch err {
		case bufio.ErrBufferFull:
		case nil, io.EOF: // an end without a line end shows up again in the next read
			if f.over != nil {
				f.over.size = f.end
				return nil, f.over, nil
			}
			return trimMessage(f.buf), nil, nil
		default:
			return nil, nil, err
		}
	}
}

// trimMessage drops the blanks around a message and its byte order mark.
func trimMessage(line []byte) []byte {
	return trimStart(bytes.TrimRight(line, blanks))
}

func trimStart(line []byte) []byte {
	line = bytes.TrimLeft(line, blanks)
	return bytes.TrimLeft(bytes.TrimPrefix(line, byteOrderMark), blanks)
}

// A frame collects one long message in bounded memory.
type frame struct {
	buf  []byte
	size int64 // bytes since the first that is not blank
	end  int64 // the same, up to the last that is not blank
	over *oversize
}

func (f *frame) add(chunk []byte) {
	if f.size == 0 {
		chunk = trimStart(chunk)
	}
	text := bytes.TrimRight(chunk, blanks)
	gap := f.size - f.end
	if len(text) > 0 {
		f.end = f.size + int64(len(text))
	}
	f.size += int64(len(chunk))
	if f.over == nil && f.end > maxMessage {
		f.overflow()
	}
	if f.over != nil {
		f.over.extend(gap, text)
		return
	}
	f.keep(chunk[:min(len(chunk), maxMessage-len(f.buf))])
}

// extend moves the tail on over gap blanks and text. Blanks that end the
// message never come into it, however many there are.
func (o *oversize) extend(gap int64, text []byte) {
	if len(text) == 0 {
		return
	}
	for range min(gap, edgeBytes) {
		o.tail = append(o.tail, ' ')
	}
	o.tail = append(o.tail, text...)
	o.tail = append(o.tail[:0], lastBytes(o.tail, edgeBytes)...)
}

// overflow lets go of the message and keeps its ends.
func (f *frame) overflow() {
	f.over = &oversize{
		head: bytes.Clone(f.buf[:min(edgeBytes, len(f.buf))]),
		tail: bytes.Clone(lastBytes(bytes.TrimRight(f.buf, blanks), edgeBytes)),
	}
	f.buf = nil
}

// keep appends chunk and doubles the buffer when it is full, up to a message:
// append alone would grow a long one by a quarter at a time.
func (f *frame) keep(chunk []byte) {
	if need := len(f.buf) + len(chunk); need > cap(f.buf) {
		grown := make([]byte, len(f.buf), min(max(2*need, 256<<10), maxMessage))
		copy(grown, f.buf)
		f.buf = grown
	}
	f.buf = append(f.buf, chunk...)
}

func lastBytes(b []byte, n int) []byte {
	return b[max(0, len(b)-n):]
}
