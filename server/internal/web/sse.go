package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/stream"
	"github.com/perstack-ai/perstack-base/tools"
)

// sseHeartbeat is how often a stream of HTTP+SSE shows that it lives.
const sseHeartbeat = 15 * time.Second

// An SSE serves HTTP+SSE, which clients of before 2025-03-26 speak: GET opens a
// stream, and what is posted to the address that it names is answered on it.
// Each stream is a connection like stdio. mcp-go's own server is not used: it
// lets pages of any origin in and goes on with the calls of clients that hung up.
type SSE struct {
	cfg    *Config
	d      *dispatch.Dispatcher
	ending context.Context // ends with the server

	mu    sync.Mutex
	conns map[string]*sseConn
}

type sseConn struct {
	*stream.Conn
	read sync.Mutex // one message is received at a time
}

// NewSSE makes the transport; Serve serves.
func NewSSE(cfg *Config) *SSE {
	d := *cfg.Dispatcher
	d.Versions = mcp.LegacyProtocolVersions()
	return &SSE{cfg: cfg, d: &d, conns: map[string]*sseConn{}}
}

// Serve serves clients until ctx ends, and returns within 4 s of that.
func (h *SSE) Serve(ctx context.Context) error {
	h.ending = ctx
	return h.cfg.serve(ctx, h)
}

func (h *SSE) paths() []string { return []string{PathSSE, pathMessage} }
func (h *SSE) sweep()          {}
func (h *SSE) close()          {}

func (h *SSE) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var f *httpFault
	switch {
	case r.URL.Path == PathSSE && r.Method == http.MethodGet:
		f = h.get(w, r)
	case r.URL.Path == pathMessage && r.Method == http.MethodPost:
		f = h.post(w, r)
	default:
		w.Header().Set("Allow", map[string]string{PathSSE: "GET, OPTIONS", pathMessage: "POST, OPTIONS"}[r.URL.Path])
		f = refuse(http.StatusMethodNotAllowed, r.Method+" is not served here")
	}
	if f != nil {
		f.write(w)
	}
}

// get serves a stream until the client hangs up or the server ends. With it
// ends all that came over it.
func (h *SSE) get(w http.ResponseWriter, r *http.Request) *httpFault {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	id := newSessionID()
	own, end := h.cfg.Sessions.Open(id)
	defer end()
	e := openEvents(w)
	c, err := stream.Open(tools.WithSession(context.WithoutCancel(r.Context()), own), h.d, id, func(line []byte) error {
		return e.send("message", line)
	})
	if err != nil {
		return nil // the stream ends without an address
	}
	defer c.CloseAndWait()
	defer h.add(id, c)() // before its address is known
	c.Exclusively(func() { err = e.send("endpoint", []byte(pathMessage+"?sessionId="+id)) })
	if err == nil {
		h.serve(r.Context(), c, e)
	}
	return nil
}

// serve keeps the stream alive until the client, a failed write or the server ends it.
func (h *SSE) serve(hangUp context.Context, c *stream.Conn, e *events) {
	tick := time.NewTicker(sseHeartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.Exclusively(func() { _ = e.alive() }) // the client is gone when this fails, which ends the stream
		case <-hangUp.Done():
			return
		case <-c.Broken():
			return
		case <-h.ending.Done():
			c.End()
			c.Finish()
			return
		}
	}
}

func (h *SSE) add(id string, c *stream.Conn) (remove func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns[id] = &sseConn{Conn: c}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.conns, id)
	}
}

func (h *SSE) find(id string) *sseConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conns[id]
}

// post hands one message to its connection; the answer comes on the stream.
func (h *SSE) post(w http.ResponseWriter, r *http.Request) *httpFault {
	c := h.find(r.URL.Query().Get("sessionId"))
	if c == nil {
		return refuse(http.StatusNotFound, "there is no such session, or its stream has ended; open one with GET "+PathSSE)
	}
	body, f := readBody(w, r)
	if f != nil {
		return f
	}
	w.WriteHeader(http.StatusAccepted)
	c.read.Lock()
	defer c.read.Unlock()
	if call := c.Receive(body); call != nil {
		go c.Serve(call)
	}
	return nil
}
