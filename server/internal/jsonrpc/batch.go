package jsonrpc

import (
	"bytes"
	"sync"
)

// MaxBatch bounds the messages of one batch.
const MaxBatch = 4096

// refusalBytes is room for a short refusal.
const refusalBytes = 200

// A Batch collects the answers to the messages of one array. It ends when the
// last is in; the reader holds it open while it hands the messages out.
type Batch struct {
	mu   sync.Mutex
	open int // answers that are still to come, the reader's hold included
	buf  bytes.Buffer
}

// NewBatch returns a batch that its reader holds open.
func NewBatch() *Batch { return &Batch{open: 1} }

// Expect says that one more answer will be added.
func (b *Batch) Expect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
}

// Add takes in one answer, nil for a call that gets none, and returns the line
// to send when it was the last one and there is any answer at all.
func (b *Batch) Add(id, line []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open--
	b.put(id, line)
	if b.open > 0 || b.buf.Len() == 0 {
		return nil
	}
	b.buf.WriteString("]\n")
	return b.buf.Bytes()
}

// put appends an answer, or a short refusal in its place when the array would
// become too long for one message.
func (b *Batch) put(id, line []byte) {
	line = bytes.TrimRight(line, "\n")
	if len(line) == 0 {
		return
	}
	if b.buf.Len()+len(line) > MaxMessage-refusalBytes*MaxBatch {
		fault := InvalidRequest("the answer does not fit into the batch; send the request alone")
		if line = EncodeError(id, fault); len(line) > refusalBytes {
			line = EncodeError(nil, fault)
		}
		line = bytes.TrimRight(line, "\n")
	}
	if b.buf.Len() == 0 {
		b.buf.WriteByte('[')
	} else {
		b.buf.WriteByte(',')
	}
	b.buf.Write(line)
}
