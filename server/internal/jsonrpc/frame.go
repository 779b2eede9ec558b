package jsonrpc

import (
	"bufio"
	"bytes"
	"io"
)

// MaxMessage bounds a message in either direction, in bytes: clients drop the
// connection at 10 MiB.
const MaxMessage = 8 << 20

var byteOrderMark = []byte("\xEF\xBB\xBF")

const whiteSpace = " \t\r\n"

// An Oversize is what is kept of a message beyond MaxMessage.
type Oversize struct {
	Size       int64 // of the whole message, without the white space around it
	head, tail []byte
}

// A LineReader hands over one message per line: LF or CRLF, a byte order mark
// and white space around it are dropped, the last line needs no line end.
type LineReader struct {
	in *bufio.Reader
}

// NewLineReader returns a LineReader of in.
func NewLineReader(in io.Reader) *LineReader {
	return &LineReader{in: bufio.NewReaderSize(in, 64<<10)}
}

// Next returns the next message, empty for a blank line, or what is left of
// one that is too long. The bytes are valid until the next call.
func (r *LineReader) Next() ([]byte, *Oversize, error) {
	chunk, err := r.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		return r.long(chunk)
	}
	if err != nil && (err != io.EOF || len(chunk) == 0) {
		return nil, nil, err
	}
	return TrimMessage(chunk), nil, nil
}

// long reads on when a line is longer than the buffer.
func (r *LineReader) long(chunk []byte) ([]byte, *Oversize, error) {
	var f frame
	f.add(chunk)
	for {
		chunk, err := r.in.ReadSlice('\n')
		f.add(chunk)
		switch err {
		case bufio.ErrBufferFull:
		case nil, io.EOF: // an end without a line end shows up again in the next read
			if f.over != nil {
				f.over.Size = f.end
				return nil, f.over, nil
			}
			return TrimMessage(f.buf), nil, nil
		default:
			return nil, nil, err
		}
	}
}

// Waiting reports whether bytes of another message have arrived already.
func (r *LineReader) Waiting() bool { return r.in.Buffered() > 0 }

// TrimMessage drops the white space around a message and its byte order mark.
func TrimMessage(line []byte) []byte {
	return trimStart(bytes.TrimRight(line, whiteSpace))
}

func trimStart(line []byte) []byte {
	line = bytes.TrimLeft(line, whiteSpace)
	return bytes.TrimLeft(bytes.TrimPrefix(line, byteOrderMark), whiteSpace)
}

// A frame collects one long message in bounded memory.
type frame struct {
	buf  []byte
	size int64 // bytes since the first that is not blank
	end  int64 // the same, up to the last that is not blank
	over *Oversize
}

func (f *frame) add(chunk []byte) {
	if f.size == 0 {
		chunk = trimStart(chunk)
	}
	text := bytes.TrimRight(chunk, whiteSpace)
	gap := f.size - f.end
	if len(text) > 0 {
		f.end = f.size + int64(len(text))
	}
	f.size += int64(len(chunk))
	if f.over == nil && f.end > MaxMessage {
		f.overflow()
	}
	if f.over != nil {
		f.over.extend(gap, text)
		return
	}
	f.keep(chunk[:min(len(chunk), MaxMessage-len(f.buf))])
}

// extend moves the tail on over gap bytes of white space and text. White space that ends the
// message never comes into it, however much there is.
func (o *Oversize) extend(gap int64, text []byte) {
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
	f.over = &Oversize{
		head: bytes.Clone(f.buf[:min(edgeBytes, len(f.buf))]),
		tail: bytes.Clone(lastBytes(bytes.TrimRight(f.buf, whiteSpace), edgeBytes)),
	}
	f.buf = nil
}

// keep appends chunk and doubles the buffer when it is full, up to a message:
// append alone would grow a long one by a quarter at a time.
func (f *frame) keep(chunk []byte) {
	if need := len(f.buf) + len(chunk); need > cap(f.buf) {
		grown := make([]byte, len(f.buf), min(max(2*need, 256<<10), MaxMessage))
		copy(grown, f.buf)
		f.buf = grown
	}
	f.buf = append(f.buf, chunk...)
}

func lastBytes(b []byte, n int) []byte {
	return b[max(0, len(b)-n):]
}
