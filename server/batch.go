package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// A batch collects the answers to the messages of one array. It ends when the
// last is in; the reader holds it open while it hands the messages out.
type batch struct {
	mu   sync.Mutex
	open int // answers that are still to come, the reader's hold included
	buf  bytes.Buffer
}

func (b *batch) expect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
}

// add takes in one answer, nil for a call that gets none, and returns the line
// to send when it was the last one and there is any answer at all.
func (b *batch) add(id, line []byte) []byte {
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
func (b *batch) put(id, line []byte) {
	line = bytes.TrimRight(line, "\n")
	if len(line) == 0 {
		return
	}
	if b.buf.Len()+len(line) > maxMessage-batchReserve {
		var short bytes.Buffer
		encodeError(&short, id, invalidRequest("the answer does not fit into the batch; send the request alone"))
		if short.Len() > 200 {
			encodeError(&short, nil, invalidRequest("the answer does not fit into the batch; send the request alone"))
		}
		line = bytes.TrimRight(short.Bytes(), "\n")
	}
	if b.buf.Len() == 0 {
		b.buf.WriteByte('[')
	} else {
		b.buf.WriteByte(',')
	}
	b.buf.Write(line)
}

// batchReserve leaves room for a short refusal of every message of a batch.
const batchReserve = 200 * maxInFlight

// receiveBatch handles an array: the revision 2025-03-26 has them, no other.
func (c *conn) receiveBatch(array []byte) {
	var elements [][]byte
	s := &scanner{b: array}
	s.array(func(e []byte) { elements = append(elements, e) })
	switch {
	case c.session.ProtocolVersion() != mcp.ProtocolVersion20250326:
		c.refuse(nil, nil, invalidRequest("batches exist in protocol version 2025-03-26 only; send one message at a time"))
	case len(elements) == 0:
		c.refuse(nil, nil, invalidRequest("the batch is empty"))
	case len(elements) > maxInFlight:
		c.refuse(nil, nil, invalidRequest(fmt.Sprintf("the batch has %d messages; the limit is %d", len(elements), maxInFlight)))
	default:
		b := &batch{open: 1}
		for _, e := range elements {
			if call := c.receiveOne(e, b); call != nil {
				go c.serve(call)
			}
		}
		c.sendLast(b.add(nil, nil))
	}
}

// isLone says whether a method is only served outside of batches: the answer to
// one orders the messages after it, the other has none for hours.
func isLone(method string) bool { return method == methodInitialize || method == methodListen }

// receiveOne handles one message, b nil when it came alone, and returns the
// call that is left to serve.
func (c *conn) receiveOne(text json.RawMessage, b *batch) *call {
	if !isObject(text) {
		c.refuse(b, nil, invalidRequest("a message must be a JSON object"))
		return nil
	}
	m := readMessage(text)
	if fault := m.check(); fault != nil {
		c.refuse(b, m.replyID(), fault)
		return nil
	}
	switch {
	case m.isResponse():
		c.answered(&m)
	case m.id == nil:
		c.notified(&m)
	case b != nil && isLone(string(unquote(m.method))):
		c.refuse(b, m.id, invalidRequest(string(unquote(m.method))+" cannot be part of a batch"))
	default:
		return c.start(&m, b)
	}
	return nil
}
