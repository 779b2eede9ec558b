package stream

import (
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

// Receive handles one message. text is not kept. It returns the call that the
// caller is to serve, nil when there is none, and must not be called again
// before it has returned.
func (c *Conn) Receive(text []byte) *Call {
	if len(text) == 0 || c.hasEnded() {
		return nil
	}
	if fault := jsonrpc.CheckUTF8(text); fault != nil {
		c.refuse(nil, nil, fault)
		return nil
	}
	if text[0] == '[' {
		c.receiveBatch(text)
		return nil
	}
	return c.receiveOne(text, nil)
}

// receiveOversize answers a message that was too long to be kept.
func (c *Conn) receiveOversize(o *jsonrpc.Oversize) {
	if c.hasEnded() {
		return
	}
	c.d.Log.Warn("message refused", "bytes", o.Size, "limit", jsonrpc.MaxMessage)
	c.refuse(nil, o.ID(), jsonrpc.OversizeError(o.Size))
}

// receiveBatch handles an array: the revision 2025-03-26 has them, no other.
func (c *Conn) receiveBatch(array []byte) {
	elements, fault := jsonrpc.Elements(array)
	switch {
	case fault != nil:
		c.refuse(nil, nil, fault)
	case c.session.ProtocolVersion() != mcp.ProtocolVersion20250326:
		c.refuse(nil, nil, jsonrpc.InvalidRequest("batches exist in protocol version 2025-03-26 only; send one message at a time"))
	case len(elements) == 0:
		c.refuse(nil, nil, jsonrpc.InvalidRequest("the batch is empty"))
	case len(elements) > jsonrpc.MaxBatch:
		c.refuse(nil, nil, jsonrpc.InvalidRequest(fmt.Sprintf("the batch has %d messages; the limit is %d", len(elements), jsonrpc.MaxBatch)))
	default:
		b := jsonrpc.NewBatch()
		for _, e := range elements {
			if call := c.receiveOne(e, b); call != nil {
				go c.Serve(call)
			}
		}
		c.sendLast(b.Add(nil, nil))
	}
}

// neverBatched says whether a method is only served outside of batches: messages
// after one wait for its answer, and the other is answered hours later.
func neverBatched(method string) bool {
	return method == dispatch.MethodInitialize || method == dispatch.MethodListen
}

// receiveOne handles one message, b nil when it came alone, and returns the
// call that is left to serve.
func (c *Conn) receiveOne(text []byte, b *jsonrpc.Batch) *Call {
	m, fault := jsonrpc.Read(text)
	if fault != nil {
		c.refuse(b, nil, fault)
		return nil
	}
	if fault := m.Check(); fault != nil {
		c.refuse(b, m.ReplyID(), fault)
		return nil
	}
	switch {
	case m.IsResponse():
		c.questions.Answer(&m)
	case m.ID == nil:
		c.notified(&m)
	case b != nil && neverBatched(m.Method()):
		c.refuse(b, m.ID, jsonrpc.InvalidRequest(m.Method()+" cannot be part of a batch"))
	default:
		return c.start(&m, b)
	}
	return nil
}

// notified handles a notification. Only one means something to us.
func (c *Conn) notified(m *jsonrpc.Message) {
	if m.Method() == dispatch.MethodCancelled {
		c.cancel(dispatch.CancelledID(m))
	}
}
