package remote

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrTooLarge: a message does not fit into a frame. Nothing of it was written.
var ErrTooLarge = errors.New("the message is too large")

// prefix is the length of the two numbers at the beginning of a frame.
const prefix = 8

// A Writer writes frames. Many may write at the same time.
type Writer struct {
	mu   sync.Mutex
	to   io.Writer
	most int
	buf  []byte
}

// NewWriter writes messages of at most most bytes, without their bodies.
func NewWriter(to io.Writer, most int) *Writer { return &Writer{to: to, most: most} }

// keepBuffer is how large a buffer is kept for the next frame.
const keepBuffer = 2 * MaxBody

// Write writes one frame, in one piece.
func (w *Writer) Write(m *Message) error {
	head, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(head) > w.most || len(m.Body) > MaxBody {
		return ErrTooLarge
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = binary.BigEndian.AppendUint32(w.buf[:0], uint32(len(head)))
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(len(m.Body)))
	w.buf = append(append(w.buf, head...), m.Body...)
	_, err = w.to.Write(w.buf)
	if cap(w.buf) > keepBuffer {
		w.buf = nil
	}
	return err
}

// A Reader reads frames. One may read at a time.
type Reader struct {
	from *bufio.Reader
	most int
}

// NewReader reads messages of at most most bytes, without their bodies.
func NewReader(from io.Reader, most int) *Reader {
	return &Reader{bufio.NewReaderSize(from, 64<<10), most}
}

// Read reads one frame. io.EOF means that the stream ended behind a frame.
func (r *Reader) Read() (*Message, error) {
	var lengths [prefix]byte
	if _, err := io.ReadFull(r.from, lengths[:]); err != nil {
		return nil, err
	}
	head, body := binary.BigEndian.Uint32(lengths[:4]), binary.BigEndian.Uint32(lengths[4:])
	if uint64(head) > uint64(r.most) || body > MaxBody {
		return nil, fmt.Errorf("a frame of %d and %d bytes, more than the %d and %d allowed", head, body, r.most, MaxBody)
	}
	text, err := r.next(int(head))
	if err != nil {
		return nil, err
	}
	m := &Message{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("a frame that is no message: %w", err)
	}
	if m.Body, err = r.next(int(body)); err != nil {
		return nil, err
	}
	return m, m.check()
}

// step is how much is allocated before it has come.
const step = 64 << 10

// next reads n bytes. Memory follows what arrives, not what was announced.
func (r *Reader) next(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	data := make([]byte, 0, min(n, step))
	for len(data) < n {
		old := len(data)
		data = append(data, make([]byte, min(n-old, max(step, old)))...)
		if _, err := io.ReadFull(r.from, data[old:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return data, nil
}
