package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/tools"
)

// heartbeat is how often an open stream of Streamable HTTP shows that it lives.
const heartbeat = 30 * time.Second

// A streamable serves Streamable HTTP on one path, in both eras. mcp-go's own
// handler is not used: it rounds ids, loses notifications, accepts forged
// sessions on GET, and remembers ended ones for ever.
type streamable struct {
	cfg     connConfig
	ending  context.Context // ends with the server
	clients *clients
	open    func(id string) (*tools.Session, func())
	tool    func(name string) *mcp.Tool
}

func newStreamable(ending context.Context, s *Server) *streamable {
	return &streamable{
		cfg: s.connConfig(), ending: ending, clients: newClients(s.newSession), open: s.newSession,
		tool: func(name string) *mcp.Tool {
			if t := s.mcp.GetTool(name); t != nil {
				return &t.Tool
			}
			return nil
		},
	}
}

func (h *streamable) sweep() { h.clients.sweep() }
func (h *streamable) close() { h.clients.close() }

func (h *streamable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	modern := mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion))
	switch {
	case r.Method == http.MethodPost:
		if f := h.post(w, r); f != nil {
			f.write(w)
		}
	case !modern && r.Method == http.MethodGet:
		h.get(w, r)
	case !modern && r.Method == http.MethodDelete:
		h.delete(w, r)
	default:
		w.Header().Set("Allow", methodsOf(modern))
		refuse(http.StatusMethodNotAllowed, r.Method+" is not served here").write(w)
	}
}

// methodsOf lists the methods of an era: the modern one has no sessions that
// could be listened to or ended.
func methodsOf(modern bool) string {
	if modern {
		return "POST, OPTIONS"
	}
	return "GET, POST, DELETE, OPTIONS"
}

// post serves one message. What it returns is left to be written.
func (h *streamable) post(w http.ResponseWriter, r *http.Request) *httpFault {
	body, f := readBody(w, r)
	if f != nil {
		return f
	}
	m, f := readPosted(body)
	if f != nil {
		return f
	}
	req := m.request(1)
	modern := req.modern || mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion))
	switch {
	case m.isResponse() && modern:
		return refuse(http.StatusBadRequest, "this protocol version has no responses of clients")
	case m.id == nil && modern:
		w.WriteHeader(http.StatusAccepted) // one client cannot cancel what may be another's
		return nil
	case modern:
		return h.serveModern(w, r, &req)
	case req.method == methodInitialize && m.id != nil:
		return h.initialize(w, r, &req)
	}
	return h.serveLegacy(w, r, &m, &req)
}

// readPosted takes apart the one message of a body.
func readPosted(body []byte) (m message, f *httpFault) {
	if fault := checkText(body); fault != nil {
		return m, &httpFault{status: http.StatusBadRequest, err: fault}
	}
	if !isObject(body) {
		return m, refuse(http.StatusBadRequest, "the body must be one JSON object: over HTTP each message has a request of its own")
	}
	m = readMessage(body)
	if fault := m.check(); fault != nil {
		return m, &httpFault{status: http.StatusBadRequest, id: m.replyID(), err: fault}
	}
	if m.id != nil && m.id[0] != '"' {
		if n, err := strconv.ParseInt(string(m.id), 10, 64); err != nil || n > tools.MaxInteger || n < -tools.MaxInteger {
			return m, refuse(http.StatusBadRequest, "id must be a string or an integer within ±(2^53−1)")
		}
	}
	return m, nil
}

// serveModern serves a request of the era without sessions. Its commands run in
// a session of that one call: what they leave behind ends with it.
func (h *streamable) serveModern(w http.ResponseWriter, r *http.Request, req *request) *httpFault {
	if fault := h.checkHeaders(r.Header, req); fault != nil {
		return &httpFault{status: http.StatusBadRequest, id: []byte(req.id), err: fault}
	}
	own, end := h.open("")
	own.OneCall = true
	defer func() { go end() }()
	ctx := tools.WithSession(r.Context(), own)
	if !req.subscribes(nil) {
		h.answer(ctx, w, r, req, nobody)
		return nil
	}
	release, ok := asStream(ctx)
	if !ok {
		return busy(w)
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ending, cancel)()
	h.answer(ctx, w, r, req, nobody)
	return nil
}

// checkHeaders holds the headers that repeat parts of a modern message against
// the message.
func (h *streamable) checkHeaders(header http.Header, req *request) *rpcError {
	version := header.Get(mcp.HeaderProtocolVersion)
	mismatch := func(text string) *rpcError { return &rpcError{Code: mcp.HEADER_MISMATCH, Message: text} }
	switch {
	case header.Get(mcp.HeaderLastEventID) != "":
		return mismatch("Last-Event-ID is not supported: streams cannot be resumed; send the request again with a new id")
	case version == "":
		return mismatch("the header " + mcp.HeaderProtocolVersion + " is missing")
	case req.version == "":
		return invalidParams("missing or invalid _meta field " + mcp.MetaKeyProtocolVersion)
	case version != req.version:
		return mismatch("the header " + mcp.HeaderProtocolVersion + " differs from _meta field " + mcp.MetaKeyProtocolVersion)
	}
	if fault := req.check(h.cfg.versions); fault != nil && fault.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION {
		return fault
	}
	if err := mcp.ValidateStandardHeaders(header.Get, req.version, mcp.MCPMethod(req.method), req.params); err != nil {
		return mismatch(err.Error())
	}
	if tool := h.tool(req.tool); tool != nil {
		look := func(name string) (string, bool) {
			values := header.Values(name)
			return header.Get(name), len(values) > 0
		}
		if err := mcp.ValidateParamHeadersLookup(look, tool, req.params); err != nil {
			return mismatch(err.Error())
		}
	}
	return nil
}

// initialize opens a session, unless it is refused.
func (h *streamable) initialize(w http.ResponseWriter, r *http.Request, req *request) *httpFault {
	k := h.clients.create()
	result, fault := h.cfg.handle(tools.WithSession(r.Context(), k.tools), req, k.session)
	if fault == nil {
		h.clients.keep(k)
		k.greet()
		w.Header().Set(headerSession, k.id)
	} else {
		k.end()
	}
	h.finish(&reply{w: w}, req, result, fault)
	return nil
}

// serveLegacy serves a message within a session.
func (h *streamable) serveLegacy(w http.ResponseWriter, r *http.Request, m *message, req *request) *httpFault {
	cancels := m.id == nil && req.method == methodCancelled
	if cancels && r.Header.Get(headerSession) == "" {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	k, leave, f := h.enter(r)
	if f != nil {
		f.id = m.replyID()
		return f
	}
	defer leave()
	switch {
	case m.isResponse():
		h.clients.answered(k, m)
	case cancels:
		h.clients.cancel(k, string(m.requestID))
	case m.id != nil:
		return h.serveCall(w, r, k, req)
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// enter finds the session of a request.
func (h *streamable) enter(r *http.Request) (k *client, leave func(), f *httpFault) {
	if v := r.Header.Get(mcp.HeaderProtocolVersion); v != "" && !mcp.IsValidProtocolVersion(v) {
		return nil, nil, refuse(http.StatusBadRequest, "unsupported protocol version "+clip(v, 100))
	}
	id := r.Header.Get(headerSession)
	if id == "" {
		return nil, nil, refuse(http.StatusBadRequest, "the header Mcp-Session-Id is missing; open a session with initialize")
	}
	if k, leave = h.clients.enter(id); k == nil {
		return nil, nil, refuse(http.StatusNotFound, "there is no such session, or it has ended; open a new one with initialize")
	}
	return k, leave, nil
}

func (h *streamable) serveCall(w http.ResponseWriter, r *http.Request, k *client, req *request) *httpFault {
	ctx, end, ok := h.clients.begin(r.Context(), k, req.id)
	if !ok {
		return &httpFault{status: http.StatusBadRequest, err: inFlightError([]byte(req.id))}
	}
	defer end()
	h.answer(tools.WithSession(ctx, k.tools), w, r, req, func(p *reply) mcpserver.ClientSession {
		return &inquiry{session: k.session, client: k, clients: h.clients, reply: p}
	})
	return nil
}

// nobody is who modern requests come from: each says all that matters of itself.
func nobody(*reply) mcpserver.ClientSession { return &session{} }

// answer runs a request and writes what comes of it, also when it was
// cancelled: an HTTP request ends with a response.
func (h *streamable) answer(ctx context.Context, w http.ResponseWriter, r *http.Request, req *request, who func(*reply) mcpserver.ClientSession) {
	p := &reply{w: w, streams: accepts(r, "text/event-stream")}
	if req.subscribes(nil) {
		defer p.keepAlive(heartbeat)()
	}
	result, fault := h.cfg.handle(tools.WithNotifier(ctx, p.notify), req, who(p))
	h.finish(p, req, result, fault)
}

// finish writes an answer. In the modern era errors have HTTP statuses.
func (h *streamable) finish(p *reply, req *request, result any, fault *rpcError) {
	buf := buffers.Get().(*bytes.Buffer)
	defer recycle(buf)
	status := http.StatusOK
	if sent := req.encode(buf, result, fault); sent != nil && req.modern {
		status = statusOf(sent.Code)
	}
	p.finish(status, buf.Bytes())
}

func statusOf(code int) int {
	if code == mcp.METHOD_NOT_FOUND {
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// delete ends a session.
func (h *streamable) delete(w http.ResponseWriter, r *http.Request) {
	_, leave, f := h.enter(r)
	if f != nil {
		f.write(w)
		return
	}
	leave()
	h.clients.remove(r.Header.Get(headerSession))
	w.WriteHeader(http.StatusOK)
}

// get streams what the server tells a session unasked.
func (h *streamable) get(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	k, leave, f := h.enter(r)
	if f != nil {
		f.write(w)
		return
	}
	defer leave()
	if !accepts(r, "text/event-stream") {
		refuse(http.StatusNotAcceptable, "Accept must permit text/event-stream").write(w)
		return
	}
	ctx, end := h.clients.listen(r.Context(), k, h.cfg.handler)
	defer end()
	h.stream(ctx, openEvents(w), k)
}

func (h *streamable) stream(ctx context.Context, e *events, k *client) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	err := e.alive()
	for err == nil {
		select {
		case n := <-k.notes:
			var line []byte
			if line, err = json.Marshal(n); err == nil {
				err = e.send("message", line)
			}
		case <-tick.C:
			err = e.alive()
		case <-ctx.Done():
			return
		case <-h.ending.Done():
			return
		}
	}
}
