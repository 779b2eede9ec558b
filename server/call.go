package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"

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
	result, fault := c.cfg.handle(call.ctx, &call.request, c.session)
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

// answer sends what has become of a call, unless it was cancelled.
func (c *conn) answer(call *call, result any, fault *rpcError) {
	buf := buffers.Get().(*bytes.Buffer)
	defer recycle(buf)
	call.encode(buf, result, fault)

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
