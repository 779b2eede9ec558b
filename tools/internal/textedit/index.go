package textedit

import (
	"bytes"
	"errors"
	"io"
	"sort"
	"sync"
)

// blockBytes is how much of a file is held at a time: large enough that system
// calls cost nothing, small enough to stay in the processor's cache.
const blockBytes = 256 << 10

// blocks are the buffers, with room for the byte behind a block.
var blocks = sync.Pool{New: func() any { return new([blockBytes + 1]byte) }}

// readAt fills p from r; that a file has become shorter is not an error.
func readAt(r io.ReaderAt, p []byte, off int64) (int, error) {
	n, err := r.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// smallBytes is up to what size a file is read at once: one system call, and no
// more memory than a result.
const smallBytes = 64 << 10

// buffered returns a small file's content, and any other file as it is.
func buffered(r io.ReaderAt, size int64) (io.ReaderAt, error) {
	if size > smallBytes {
		return r, nil
	}
	data := make([]byte, size)
	n, err := readAt(r, data, 0)
	return bytes.NewReader(data[:n]), err
}

// ends says what ends a line.
type ends bool

const (
	onlyLF ends = false // LF; a CR before it is content
	anyEnd ends = true  // LF, CRLF or a lone CR
)

// An index finds lines in a file. It counts the line ends of each block once, as
// far as it has to, and remembers the counts, so that any line is then found by
// reading one block again.
type index struct {
	r      io.ReaderAt
	size   int64 // bytes, as they were in the beginning
	ends   ends
	before []int64 // line ends before each block counted, and all so far at the end

	version any // of the file, nil when its counts are not kept
}

func newIndex(r io.ReaderAt, size int64, e ends) *index {
	x := &index{r: r, size: size, ends: e, before: []int64{0}}
	x.recall(r)
	return x
}

// counted is how many line ends have been counted.
func (x *index) counted() int64 { return x.before[len(x.before)-1] }

// scan counts blocks until there are n line ends or no more blocks.
func (x *index) scan(n int64) error {
	if !x.more(n) {
		return nil
	}
	defer x.remember()
	buf := blocks.Get().(*[blockBytes + 1]byte)
	defer blocks.Put(buf)
	for x.more(n) {
		data, block, err := x.block(buf, len(x.before)-1)
		if err != nil {
			return err
		}
		x.before = append(x.before, x.counted()+x.count(data, block))
	}
	return nil
}

// more tells whether there is a block to count on the way to n line ends.
func (x *index) more(n int64) bool {
	return x.counted() < n && int64(len(x.before)-1)*blockBytes < x.size
}

// block reads block number i: data is the block and the byte behind it, if there
// is one; block is its length.
func (x *index) block(buf *[blockBytes + 1]byte, i int) (data []byte, block int, err error) {
	off := int64(i) * blockBytes
	n, err := readAt(x.r, buf[:min(blockBytes+1, x.size-off)], off)
	return buf[:n], min(n, blockBytes), err
}

// count counts the line ends in data[:block]. A CR ends a line where no LF
// follows it; that is what the byte behind the block is for.
func (x *index) count(data []byte, block int) int64 {
	n := bytes.Count(data[:block], []byte{'\n'})
	if x.ends == anyEnd {
		for i := nextCR(data[:block], 0); i < block; i = nextCR(data[:block], i+1) {
			if i+1 == len(data) || data[i+1] != '\n' {
				n++
			}
		}
	}
	return int64(n)
}

func nextCR(data []byte, from int) int {
	if i := bytes.IndexByte(data[from:], '\r'); i >= 0 {
		return from + i
	}
	return len(data)
}

// offset is where the line behind n line ends begins. ok is false when there are
// not that many.
func (x *index) offset(n int64) (off int64, ok bool, err error) {
	if n <= 0 {
		return 0, true, nil
	}
	if err := x.scan(n); err != nil || x.counted() < n {
		return 0, false, err
	}
	i := sort.Search(len(x.before)-1, func(i int) bool { return x.before[i+1] >= n })
	buf := blocks.Get().(*[blockBytes + 1]byte)
	defer blocks.Put(buf)
	data, block, err := x.block(buf, i)
	if err != nil {
		return 0, false, err
	}
	at, ok := x.skip(data, block, n-x.before[i])
	return int64(i)*blockBytes + int64(at), ok, nil
}

// skip is the place behind the n-th line end in a block; ok is false when the
// block has changed since it was counted.
func (x *index) skip(data []byte, block int, n int64) (at int, ok bool) {
	if x.ends == onlyLF {
		return skipLF(data[:block], n)
	}
	for i, c := range data[:block] {
		if c == '\n' || c == '\r' && (i+1 == len(data) || data[i+1] != '\n') {
			if n--; n == 0 {
				return i + 1, true
			}
		}
	}
	return 0, false
}

// skipLF is skip where LF alone ends lines: twice as fast, for lines of usual length.
func skipLF(data []byte, n int64) (at int, ok bool) {
	for ; n > 0; n-- {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			return 0, false
		}
		at += i + 1
	}
	return at, true
}

// lines is how many lines the file has. What follows the last line end is a line
// unless it is empty.
func (x *index) lines() (int64, error) {
	n, err := x.allEnds()
	if err != nil || x.size == 0 {
		return 0, err
	}
	var last [1]byte
	if _, err := readAt(x.r, last[:], x.size-1); err != nil {
		return 0, err
	}
	if last[0] == '\n' || x.ends == anyEnd && last[0] == '\r' {
		return n, nil
	}
	return n + 1, nil
}

// allEnds is how many line ends the file has.
func (x *index) allEnds() (int64, error) {
	err := x.scan(x.size + 1)
	return x.counted(), err
}

// fromEnd is where the last n pieces between LFs begin, found by reading
// backwards. pieces is n, or how many there are when there are fewer.
func (x *index) fromEnd(n int64) (off, pieces int64, err error) {
	buf := blocks.Get().(*[blockBytes + 1]byte)
	defer blocks.Put(buf)
	for i := int((x.size - 1) / blockBytes); i >= 0 && x.size > 0; i-- {
		data, block, err := x.block(buf, i)
		if err != nil {
			return 0, 0, err
		}
		for at := block; ; pieces++ {
			if at = bytes.LastIndexByte(data[:at], '\n'); at < 0 {
				break
			}
			if pieces+1 == n {
				return int64(i)*blockBytes + int64(at) + 1, n, nil
			}
		}
	}
	return 0, pieces + 1, nil
}
