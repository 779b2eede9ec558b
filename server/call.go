package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/tools"
)

// A call is one request that is being served.
type call struct {
	request
	ctx    context.Context
	cancel context.CancelFunc
	turn   turn
	batch  *batch
	dead   bool // answered or cancelled: nothing more is sent for it; guarded by conn.mu
}

// start admits a request. It returns the call that the caller is to serve, nil
// when there is nothing left to do: it serves initialize itself.
func (c *conn) start(m *message, b *batch) *call {
	call := &call{batch: b}
	if fault := c.admit(call, m); fault != nil {
		c.refuse(b, m.id, fault)
		return nil
	}
	if call.ctx == nil {
		return nil // the connection has ended meanwhile
	}
	if b != nil {
		b.expect()
	}
	call.ctx = tools.WithNotifier(call.ctx, func(method string, params any) { c.notify(call, method, params) })
	call.turn = c.lanes.join(c.laneOf(&call.request))
	if call.method == methodInitialize {
		c.serve(call)
		return nil
	}
	return call
}

// admit gives a request its slot and claims its id. It leaves the call without
// a context when the connection has ended.
func (c *conn) admit(call *call, m *message) *rpcError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil
	}
	if _, taken := c.calls[string(m.id)]; taken {
		return inFlightError(m.id)
	}
	if c.slots >= maxInFlight {
		return invalidRequest(fmt.Sprintf("too many requests in flight (%d)", maxInFlight))
	}
	c.seq++
	call.request = m.request(c.seq)
	call.ctx, call.cancel = context.WithCancel(c.base)
	c.calls[call.id] = call
	c.slots++
	c.tasks.Add(1)
	return nil
}

// serve runs a call to its end, in its turn.
func (c *conn) serve(call *call) {
	defer c.release(call)
	call.turn.wait()
	if c.isDead(call) {
		return
	}
	start := time.Now()
	result, fault := c.handle(call)
	c.answer(call, result, fault)
	if c.cfg.log.Enabled(call.ctx, slog.LevelDebug) {
		c.cfg.log.Debug("request served", "method", clip(call.method, 100), "tool", clip(call.tool, 100), "took", time.Since(start))
	}
}

func (c *conn) release(call *call) {
	call.cancel()
	call.turn.finish()
	c.mu.Lock()
	c.slots--
	c.mu.Unlock()
	c.tasks.Done()
}

// handle asks whoever is in charge of the request. A panic is answered as a
// failure: the server goes on.
func (c *conn) handle(call *call) (result any, fault *rpcError) {
	defer func() {
		if recover() != nil {
			c.cfg.log.Error("panic", "method", clip(call.method, 100), "tool", clip(call.tool, 100), "stack", string(debug.Stack()))
			result, fault = nil, &rpcError{Code: mcp.INTERNAL_ERROR}
		}
	}()
	if fault := call.check(c.cfg.versions); fault != nil {
		return nil, fault
	}
	if call.subscribes(c.cfg.versions) {
		return c.listen(call)
	}
	who := c.session
	if call.modern {
		who = &session{id: c.session.id, ready: true}
	}
	ctx := c.cfg.handler.WithContext(call.ctx, who)
	if c.cfg.intercept != nil {
		if result, fault, handled := c.cfg.intercept(ctx, &call.request); handled {
			return result, fault
		}
	}
	return c.unwrap(call, c.cfg.handler.HandleMessage(ctx, call.body))
}

// unwrap takes mcp-go's answer apart, so that the id can be set as it was sent.
func (c *conn) unwrap(call *call, reply mcp.JSONRPCMessage) (any, *rpcError) {
	switch r := reply.(type) {
	case mcp.JSONRPCResponse:
		return r.Result, nil
	case mcp.JSONRPCError:
		if r.Error.Code == mcp.INVALID_REQUEST { // the envelope is ours: its params did not decode
			return nil, invalidParams("the params of " + clip(call.method, 100) + " do not have the form that the protocol gives them")
		}
		return nil, &rpcError{Code: r.Error.Code, Message: r.Error.Message, Data: r.Error.Data}
	}
	return nil, &rpcError{Code: mcp.INTERNAL_ERROR}
}

// answer sends what has become of a call, unless it was cancelled.
func (c *conn) answer(call *call, result any, fault *rpcError) {
	buf := buffers.Get().(*bytes.Buffer)
	defer recycle(buf)
	c.encode(buf, call, result, fault)

	c.wmu.Lock()
	defer c.wmu.Unlock()
	if !c.settle(call) {
		return
	}
	line := buf.Bytes()
	if call.batch != nil {
		if line = call.batch.add([]byte(call.id), line); line == nil {
			return
		}
	}
	c.sendLocked(line)
	if call.method == methodInitialize && fault == nil {
		c.session.greet()
	}
}

// encode makes the line of an answer. What cannot be sent becomes a failure
// that can.
func (c *conn) encode(buf *bytes.Buffer, call *call, result any, fault *rpcError) {
	if fault == nil {
		err := encodeAnswer(buf, call.id, "result", result)
		if err == nil {
			return
		}
		result, fault = call.unsendable(err)
	} else if fault.Code == mcp.INTERNAL_ERROR {
		result, fault = call.failed(fault.Message)
	}
	if fault == nil {
		if encodeAnswer(buf, call.id, "result", result) == nil {
			return
		}
		fault = invalidRequest("the answer does not fit into a message")
	}
	encodeError(buf, []byte(call.id), fault)
}

// unsendable says why a result is not sent.
func (r *request) unsendable(err error) (any, *rpcError) {
	var large *tooLargeError
	if !errors.As(err, &large) {
		return r.failed("")
	}
	if r.method == methodToolsCall {
		return r.toolError("too_large: the result of " + clip(r.tool, 100) + " is " + large.Error() + "; ask for less at a time"), nil
	}
	return nil, invalidParams("the result of " + clip(r.method, 100) + " is " + large.Error())
}

// failed words a fault that is not the client's. A tool's call has a result
// even then, and no text of Go's reaches it; a resource's or prompt's handler
// gives the text.
func (r *request) failed(text string) (any, *rpcError) {
	if r.method == methodToolsCall {
		return r.toolError("internal: " + clip(r.tool, 100) + " failed inside the server; the server goes on."), nil
	}
	if text == "" {
		text = clip(r.method, 100) + " failed inside the server; the server goes on."
	}
	return nil, invalidParams(text)
}

func (r *request) toolError(text string) *mcp.CallToolResult {
	result := &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(text)}, IsError: true}
	if r.modern {
		result.ResultType = mcp.ResultTypeComplete
	}
	return result
}

// notify sends a notification of a call ahead of its answer.
func (c *conn) notify(call *call, method string, params any) {
	buf := buffers.Get().(*bytes.Buffer)
	defer recycle(buf)
	if err := encodeNotice(buf, "", method, params); err != nil {
		c.cfg.log.Warn("notification dropped", "method", method)
		return
	}
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if !c.isDead(call) {
		c.sendLocked(buf.Bytes())
	}
}

// settle claims the right to answer a call and frees its id.
func (c *conn) settle(call *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call.dead {
		return false
	}
	call.dead = true
	delete(c.calls, call.id)
	return true
}

func (c *conn) isDead(call *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return call.dead
}

// cancel ends the call of an id without an answer. Unknown and finished ones
// are ignored.
func (c *conn) cancel(id string) {
	c.mu.Lock()
	call := c.calls[id]
	c.mu.Unlock()
	if call == nil || !c.settle(call) {
		return
	}
	call.cancel()
	if call.batch != nil {
		c.sendLast(call.batch.add(nil, nil))
	}
}
