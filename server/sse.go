package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/tools"
)

// sseHeartbeat is how often a stream of HTTP+SSE shows that it lives.
const sseHeartbeat = 15 * time.Second

// An sse serves HTTP+SSE, which clients of before 2025-03-26 speak: GET opens a
// stream, and what is posted to the address that it names is answered on it.
// Each stream is a connection like stdio. mcp-go's own server is not used: it
// lets pages of any origin in and goes on with the calls of who hung up.
type sse struct {
	cfg    connConfig
	ending context.Context
	open   func(id string) (*tools.Session, func())

	mu    sync.Mutex
	conns map[string]*sseConn
}

type sseConn struct {
	conn *conn
	read sync.Mutex // one message is received at a time
}

func newSSE(ending context.Context, s *Server) *sse {
	cfg := s.connConfig()
	cfg.versions = mcp.LegacyProtocolVersions()
	return &sse{cfg: cfg, ending: ending, open: s.newSession, conns: map[string]*sseConn{}}
}

func (h *sse) sweep() {}
func (h *sse) close() {}

func (h *sse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var f *httpFault
	switch {
	case r.URL.Path == pathSSE && r.Method == http.MethodGet:
		f = h.get(w, r)
	case r.URL.Path == pathMessage && r.Method == http.MethodPost:
		f = h.post(w, r)
	default:
		w.Header().Set("Allow", map[string]string{pathSSE: "GET, OPTIONS", pathMessage: "POST, OPTIONS"}[r.URL.Path])
		f = refuse(http.StatusMethodNotAllowed, r.Method+" is not served here")
	}
	if f != nil {
		f.write(w)
	}
}

// get serves a stream until the client hangs up or the server ends. With it
// ends all that came over it.
func (h *sse) get(w http.ResponseWriter, r *http.Request) *httpFault {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	id := newSessionID()
	own, end := h.open(id)
	defer end()
	e := openEvents(w)
	c, err := openConn(tools.WithSession(context.WithoutCancel(r.Context()), own), h.cfg, id, func(line []byte) error {
		return e.send("message", line)
	})
	if err != nil {
		return nil // the stream ends without an address
	}
	defer c.silence()
	defer h.add(id, c)() // before its address is known
	c.wmu.Lock()
	err = e.send("endpoint", []byte(pathMessage+"?sessionId="+id))
	c.wmu.Unlock()
	if err == nil {
		h.serve(r.Context(), c, e)
	}
	return nil
}

// serve keeps the stream alive until it ends, whoever ends it.
func (h *sse) serve(hangUp context.Context, c *conn, e *events) {
	tick := time.NewTicker(sseHeartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.comment(e)
		case <-hangUp.Done():
			return
		case <-c.broken:
			return
		case <-h.ending.Done():
			c.end()
			c.finish()
			return
		}
	}
}

func (h *sse) add(id string, c *conn) (remove func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns[id] = &sseConn{conn: c}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.conns, id)
	}
}

func (h *sse) find(id string) *sseConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conns[id]
}

// post hands one message to its connection; the answer comes on the stream.
func (h *sse) post(w http.ResponseWriter, r *http.Request) *httpFault {
	c := h.find(r.URL.Query().Get("sessionId"))
	if c == nil {
		return refuse(http.StatusNotFound, "there is no such session, or its stream has ended; open one with GET "+pathSSE)
	}
	body, f := readBody(w, r)
	if f != nil {
		return f
	}
	w.WriteHeader(http.StatusAccepted)
	c.read.Lock()
	defer c.read.Unlock()
	if call := c.conn.receive(body); call != nil {
		go c.conn.serve(call)
	}
	return nil
}

// comment shows that the stream lives.
func (c *conn) comment(e *events) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if !c.isClosed() {
		_ = e.alive() // the client is gone when this fails, which ends the stream
	}
}

// silence closes the connection and waits for the line that is being written:
// afterwards the stream may be taken away.
func (c *conn) silence() {
	c.close()
	c.wmu.Lock()
	defer c.wmu.Unlock()
}
