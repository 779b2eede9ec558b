package tasks

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/tools"
)

// A Call is one request of a client that takes tasks.
type Call struct {
	// Work does what was asked for.
	Work func(ctx context.Context) (result any, fault *jsonrpc.Error)
	// Encode makes the result, or the error, as a direct answer would have it.
	Encode func(result any, fault *jsonrpc.Error) (json.RawMessage, *jsonrpc.Error)
	// Hold keeps what the work needs from ending with the request, until release.
	Hold func() (release func())
	// Answers says whether the client can be asked.
	Answers bool
}

// An answer is what has come of the work.
type answer struct {
	result any
	fault  *jsonrpc.Error
}

// Serve does the work of a call. When that takes long, it answers with the [View] of
// a task, which goes on when ctx ends. Until then the end of ctx ends the work.
func (g *Registry) Serve(ctx context.Context, c Call) (any, *jsonrpc.Error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &task{
		g: g, cancel: cancel, call: c, created: time.Now(), status: working,
		begun: make(chan struct{}), asked: make(chan struct{}), decided: make(chan struct{}), direct: make(chan answer, 1),
	}
	t.updated = t.created
	hungUp := context.AfterFunc(ctx, cancel)
	defer hungUp()
	go func() {
		defer cancel()
		result, fault := c.Work(tools.WithTask(own, t))
		t.finish(answer{result, fault})
	}()
	return t.await(hungUp)
}

// await returns what is to be answered. stay makes the work independent of the
// request, unless that has ended.
func (t *task) await(stay func() bool) (any, *jsonrpc.Error) {
	timer := time.NewTimer(t.g.after)
	defer timer.Stop()
	begun, asked := t.begun, t.asked
	late, ready := t.g.after <= 0, false
	for {
		select {
		case a := <-t.direct:
			return a.result, a.fault
		case <-timer.C:
			late = true
		case <-begun:
			begun, ready = nil, true
		case <-asked:
			asked, late, ready = nil, true, true
		}
		if !late || !ready {
			continue
		}
		view, later := t.enroll(stay)
		if later && asked != nil {
			timer.Reset(enrollAgain)
			continue
		}
		close(t.decided)
		if view != nil {
			return view.Created(), nil
		}
		a := <-t.direct
		return a.result, a.fault
	}
}

// enrollAgain is when a call tries again to become a task that was one too many.
const enrollAgain = time.Second

// enroll makes a call a task. It does not when the work is over or cancelled; later
// says that there are too many.
func (t *task) enroll(stay func() bool) (v *View, later bool) {
	g := t.g
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.draining || t.over:
		return nil, false
	case g.running >= maxRunning:
		return nil, true
	case !stay():
		return nil, false
	}
	t.id, t.release = g.newID(), t.call.Hold()
	g.tasks[t.id] = t
	g.running++
	return t.view(), false
}

// finish takes what has come of the work.
func (t *task) finish(a answer) {
	g := t.g
	g.mu.Lock()
	t.over = true
	enrolled := t.id != ""
	g.mu.Unlock()
	if !enrolled {
		t.direct <- a
		return
	}
	defer t.release()
	result, fault := t.call.Encode(a.result, a.fault)
	g.mu.Lock()
	defer g.mu.Unlock()
	t.updated, t.message, t.line = time.Now(), t.shown(), nil
	switch {
	case t.cancelled:
		t.status = cancelled
	case fault != nil:
		t.status, t.fault, t.message = failed, fault, jsonrpc.Clip(fault.Message, 200)
	default:
		t.status, t.result = completed, result
	}
	t.lifetime = time.Since(t.created) + g.ttl
	// What the request and its session had is not kept for as long as the result.
	t.call, t.cancel, t.release, t.questions = Call{}, func() {}, nil, nil
	g.keep(t)
	t.ring()
}
