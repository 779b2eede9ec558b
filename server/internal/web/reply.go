package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
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

// events writes server-sent events. One goroutine at a time.
type events struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// openEvents begins an event stream.
func openEvents(w http.ResponseWriter) *events {
	e := &events{w: w, rc: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	limitWrite(e.rc)
	w.WriteHeader(http.StatusOK)
	return e
}

// send writes one event with one line of data, at once.
func (e *events) send(name string, line []byte) error {
	var buf bytes.Buffer
	buf.WriteString("event: " + name + "\ndata: ")
	buf.Write(bytes.TrimRight(line, "\n"))
	buf.WriteString("\n\n")
	return e.write(buf.Bytes())
}

// alive writes a comment, so that no proxy takes the stream for dead.
func (e *events) alive() error { return e.write([]byte(": alive\n\n")) }

func (e *events) write(text []byte) error {
	limitWrite(e.rc)
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.rc.Flush()
}

// limitWrite gives the next write its time: a client that reads nothing must not
// hold a call for ever.
func limitWrite(rc *http.ResponseController) { _ = rc.SetWriteDeadline(time.Now().Add(writeTime)) }

// An httpFault is a request that gets an HTTP status and a JSON-RPC error instead
// of an answer.
type httpFault struct {
	status int
	id     []byte // of the request, nil for null
	err    *jsonrpc.Error
}

// refuse makes an httpFault that names no request.
func refuse(status int, text string) *httpFault {
	return &httpFault{status: status, err: jsonrpc.InvalidRequest(text)}
}

func (f *httpFault) write(w http.ResponseWriter) {
	writeJSON(w, f.status, jsonrpc.EncodeError(f.id, f.err))
}

// writeJSON writes one whole answer.
func writeJSON(w http.ResponseWriter, status int, line []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(line)))
	limitWrite(http.NewResponseController(w))
	w.WriteHeader(status)
	_, _ = w.Write(line) // the client is gone when this fails, which ends its calls
}

// An inquiry is a session of Streamable HTTP as one of its calls sees it: what
// that call asks the client goes out on the call's own answer.
type inquiry struct {
	*dispatch.Session
	questions *dispatch.Questions
	reply     *reply
}

var (
	_ mcpserver.SessionWithElicitation = (*inquiry)(nil)
	_ mcpserver.SessionWithSampling    = (*inquiry)(nil)
)

// RequestElicitation asks the client and waits for its answer, until ctx ends.
func (q *inquiry) RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return q.Elicit(ctx, r, q.ask)
}

// RequestSampling asks the client for a completion.
func (q *inquiry) RequestSampling(ctx context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return q.Sample(ctx, r, q.ask)
}

func (q *inquiry) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return q.questions.Ask(ctx, func(id string) error {
		line, err := jsonrpc.EncodeNotice(id, method, params)
		if err == nil && !q.reply.send(line) {
			err = dispatch.ErrClientGone
		}
		return err
	}, nil)
}
