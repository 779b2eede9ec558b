package stream

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/tools"
)

// A Call is one request that is being served.
type Call struct {
	dispatch.Request
	ctx    context.Context
	cancel context.CancelFunc
	turn   turn
	batch  *jsonrpc.Batch
	done   bool // answered or cancelled: nothing more is sent for it; guarded by Conn.mu
}

// start admits a request. It returns the call that the caller is to serve, nil
// when there is nothing left to do: it serves initialize itself.
func (c *Conn) start(m *jsonrpc.Message, b *jsonrpc.Batch) *Call {
	call := &Call{Request: dispatch.NewRequest(m), batch: b}
	if fault := c.admit(call); fault != nil {
		c.d.Refused(c.base, &call.Request, c.session, fault)
		c.refuse(b, m.ID, fault)
		return nil
	}
	if call.ctx == nil {
		return nil // the connection has ended meanwhile
	}
	if b != nil {
		b.Expect()
	}
	call.ctx = tools.WithNotifier(call.ctx, func(method string, params any) { c.notify(call, method, params) })
	if c.d.Trace != nil {
		call.Received = time.Now()
	}
	call.turn = c.lanes.join(c.laneOf(call))
	if call.Method == dispatch.MethodInitialize {
		c.Serve(call)
		return nil
	}
	return call
}

// admit gives a request its slot and claims its id. It leaves the call without
// a context when the connection has ended.
func (c *Conn) admit(call *Call) *jsonrpc.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil
	}
	if _, taken := c.calls[call.ID]; taken {
		return jsonrpc.InFlight([]byte(call.ID))
	}
	if c.slots >= maxInFlight {
		return jsonrpc.InvalidRequest(fmt.Sprintf("too many requests in flight (%d)", maxInFlight))
	}
	call.ctx, call.cancel = context.WithCancel(c.base)
	c.calls[call.ID] = call
	c.slots++
	c.tasks.Add(1)
	return nil
}

// Serve runs a call to its end, in its turn.
func (c *Conn) Serve(call *Call) {
	defer c.release(call)
	call.turn.wait()
	if c.isDone(call) {
		c.d.Refused(call.ctx, &call.Request, c.session, nil)
		return
	}
	start := time.Now()
	result, fault := c.d.Handle(call.ctx, &call.Request, c.session)
	c.answer(call, result, fault)
	if c.d.Log.Enabled(call.ctx, slog.LevelDebug) {
		c.d.Log.DebugContext(call.InSpan(call.ctx), "request served", "method", jsonrpc.Clip(call.Method, 100), "tool", jsonrpc.Clip(call.Tool, 100), "took", time.Since(start))
	}
}

func (c *Conn) release(call *Call) {
	call.cancel()
	call.turn.finish()
	c.mu.Lock()
	c.slots--
	c.mu.Unlock()
	c.tasks.Done()
}

// answer sends what has become of a call, unless it was cancelled.
func (c *Conn) answer(call *Call, result any, fault *jsonrpc.Error) {
	line, _ := call.Encode(result, fault)
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if !c.settle(call) {
		return
	}
	if call.batch != nil {
		if line = call.batch.Add([]byte(call.ID), line); line == nil {
			return
		}
	}
	c.sendLocked(line)
	if call.Method == dispatch.MethodInitialize && fault == nil {
		c.session.MarkReady()
	}
}

// notify sends a notification of a call ahead of its answer.
func (c *Conn) notify(call *Call, method string, params any) {
	line, err := jsonrpc.EncodeNotice("", method, params)
	if err != nil {
		c.d.Log.Warn("notification dropped", "method", method)
		return
	}
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if !c.isDone(call) {
		c.sendLocked(line)
	}
}

// settle claims the right to answer a call and frees its id.
func (c *Conn) settle(call *Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call.done {
		return false
	}
	call.done = true
	delete(c.calls, call.ID)
	return true
}

func (c *Conn) isDone(call *Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return call.done
}

// laneOf names the lane that a call waits in, "" for none.
func (c *Conn) laneOf(call *Call) string {
	if call.Tool == "" {
		return ""
	}
	return c.d.Tools.Lane(call.Tool)
}

// cancel ends the call of an id without an answer. Unknown and finished ones
// are ignored.
func (c *Conn) cancel(id string) {
	c.mu.Lock()
	call := c.calls[id]
	c.mu.Unlock()
	if call == nil || !c.settle(call) {
		return
	}
	call.cancel()
	if call.batch != nil {
		c.sendLast(call.batch.Add(nil, nil))
	}
}

// Lanes put calls that change the same state into the order in which they
// arrived. The zero value is ready. It is used by the reader alone.
type lanes map[string]chan struct{}

// A turn is one call's place in its lane.
type turn struct {
	before <-chan struct{} // closed when the call ahead is done, nil when there is none
	done   chan struct{}
}

// join takes the next place in a lane; a call without a lane ("") has its turn
// at once.
func (l lanes) join(lane string) turn {
	if lane == "" {
		return turn{}
	}
	t := turn{before: l[lane], done: make(chan struct{})}
	l[lane] = t.done
	return t
}

// wait blocks until it is this call's turn. A cancelled call waits as well: its
// place is what keeps the calls behind it in order.
func (t turn) wait() {
	if t.before != nil {
		<-t.before
	}
}

func (t turn) finish() {
	if t.done != nil {
		close(t.done)
	}
}
