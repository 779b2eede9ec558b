package web

import (
	"net/http"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

// A reply is the answer to one POST. It is one JSON object, or, as soon as
// there is a notification before the answer, an event stream: the
// notification's own channel is the one of the result, so it can neither be
// lost nor overtaken.
type reply struct {
	w       http.ResponseWriter
	streams bool // the client reads event streams

	mu     sync.Mutex
	events *events // nil until the first notification
	done   bool
}

// notify sends a notification, at once. After the answer it is dropped.
func (p *reply) notify(method string, params any) {
	if line, err := jsonrpc.EncodeNotice("", method, params); err == nil {
		p.send(line)
	}
}

// send writes a message of ours ahead of the answer, and says whether it could.
func (p *reply) send(line []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || !p.streams {
		return false
	}
	if p.events == nil {
		p.events = openEvents(p.w)
	}
	return p.events.send("message", line) == nil
}

// finish sends the answer. status counts when nothing was sent before.
func (p *reply) finish(status int, line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	if p.events == nil {
		writeJSON(p.w, status, line)
		return
	}
	_ = p.events.send("message", line) // the client is gone when this fails
}

// keepAlive writes a comment now and then until stop is called.
func (p *reply) keepAlive(every time.Duration) (stop func()) {
	over := make(chan struct{})
	tick := time.NewTicker(every)
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.comment()
			case <-over:
				return
			}
		}
	}()
	return func() { close(over) }
}

func (p *reply) comment() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.events != nil && !p.done {
		_ = p.events.alive()
	}
}
