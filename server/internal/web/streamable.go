package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/tools"
)

// heartbeat is how often an open stream of Streamable HTTP shows that it lives.
const heartbeat = 30 * time.Second

// A Streamable serves Streamable HTTP on one path, in both eras. mcp-go's own
// handler is not used: it rounds ids, loses notifications, accepts forged
// sessions on GET, and never forgets sessions that have ended.
type Streamable struct {
	cfg     *Config
	d       *dispatch.Dispatcher
	clients *clients
	ending  context.Context // ends with the server
}

// NewStreamable makes the transport; Serve serves.
func NewStreamable(cfg *Config) *Streamable {
	return &Streamable{cfg: cfg, d: cfg.Dispatcher, clients: newClients(cfg.Sessions)}
}

// Serve serves clients until ctx ends, and returns within 4 s of that.
func (h *Streamable) Serve(ctx context.Context) error {
	h.ending = ctx
	return h.cfg.serve(ctx, h)
}

func (h *Streamable) paths() []string { return []string{PathMCP} }

func (h *Streamable) sweep() { h.clients.sweep() }
func (h *Streamable) close() { h.clients.close() }

func (h *Streamable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
func (h *Streamable) post(w http.ResponseWriter, r *http.Request) *httpFault {
	body, f := readBody(w, r)
	if f != nil {
		return f
	}
	m, f := readPosted(body)
	if f != nil {
		return f
	}
	req := dispatch.NewRequest(&m)
	modern := req.Modern || mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion))
	switch {
	case m.IsResponse() && modern:
		return refuse(http.StatusBadRequest, "this protocol version has no responses of clients")
	case m.ID == nil && modern:
		w.WriteHeader(http.StatusAccepted) // one client cannot cancel what may be another's
		return nil
	case modern:
		return h.serveModern(w, r, &req)
	case req.Method == dispatch.MethodInitialize && m.ID != nil:
		return h.initialize(w, r, &req)
	}
	return h.serveLegacy(w, r, &m, &req)
}

// readPosted takes apart the one message of a body.
func readPosted(body []byte) (m jsonrpc.Message, f *httpFault) {
	fault := jsonrpc.CheckUTF8(body)
	if fault == nil {
		m, fault = jsonrpc.Read(body)
	}
	switch {
	case fault == nil:
	case fault.Code == mcp.INVALID_REQUEST:
		return m, refuse(http.StatusBadRequest, "the body must be one JSON object: over HTTP each message has a request of its own")
	default:
		return m, &httpFault{status: http.StatusBadRequest, err: fault}
	}
	if fault := m.Check(); fault != nil {
		return m, &httpFault{status: http.StatusBadRequest, id: m.ReplyID(), err: fault}
	}
	if m.ID != nil && m.ID[0] != '"' {
		if n, err := strconv.ParseInt(string(m.ID), 10, 64); err != nil || n > tools.MaxInteger || n < -tools.MaxInteger {
			return m, refuse(http.StatusBadRequest, "id must be a string or an integer within ±(2^53−1)")
		}
	}
	return m, nil
}

// serveModern serves a request of the era without sessions. Its commands run in
// a session of that one call: what they leave behind ends with it, or with the task
// that it becomes.
func (h *Streamable) serveModern(w http.ResponseWriter, r *http.Request, req *dispatch.Request) *httpFault {
	if fault := h.checkHeaders(r.Header, req); fault != nil && !req.Removed() {
		h.d.Refused(r.Context(), req, noClient(nil), fault)
		return &httpFault{status: http.StatusBadRequest, id: []byte(req.ID), err: fault}
	}
	own, end := h.cfg.Sessions.OpenCall()
	lease, release := dispatch.NewLease(func() { go end() })
	defer release()
	ctx := dispatch.WithLease(tools.WithSession(r.Context(), own), lease)
	if !req.Subscribes(nil) {
		h.answer(ctx, w, r, req, noClient)
		return nil
	}
	release, ok := holdStream(ctx)
	if !ok {
		return busy(w)
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ending, cancel)()
	h.answer(ctx, w, r, req, noClient)
	return nil
}

// checkHeaders holds the headers that repeat parts of a modern message against
// the message.
func (h *Streamable) checkHeaders(header http.Header, req *dispatch.Request) *jsonrpc.Error {
	version := header.Get(mcp.HeaderProtocolVersion)
	mismatch := func(text string) *jsonrpc.Error { return &jsonrpc.Error{Code: mcp.HEADER_MISMATCH, Message: text} }
	switch {
	case header.Get(mcp.HeaderLastEventID) != "":
		return mismatch("Last-Event-ID is not supported: streams cannot be resumed; send the request again with a new id")
	case version == "":
		return mismatch("the header " + mcp.HeaderProtocolVersion + " is missing")
	case req.Version == "":
		return jsonrpc.InvalidParams("missing or invalid _meta field " + mcp.MetaKeyProtocolVersion)
	case version != req.Version:
		return mismatch("the header " + mcp.HeaderProtocolVersion + " differs from _meta field " + mcp.MetaKeyProtocolVersion)
	}
	if fault := req.Check(h.d.Versions); fault != nil && fault.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION {
		return fault
	}
	if err := mcp.ValidateStandardHeaders(header.Get, req.Version, mcp.MCPMethod(req.Method), req.Params); err != nil {
		return mismatch(err.Error())
	}
	if id, ok := req.TaskName(); ok {
		if name, ok := mcp.DecodeHeaderValue(header.Get(mcp.HeaderName)); !ok || name == "" || name != id {
			return mismatch("the header " + mcp.HeaderName + " must be params.taskId, which it routes " + req.Method + " by")
		}
	}
	if tool := h.d.Tools.Tool(req.Tool); tool != nil {
		look := func(name string) (string, bool) {
			values := header.Values(name)
			return header.Get(name), len(values) > 0
		}
		if err := mcp.ValidateParamHeadersLookup(look, tool, req.Params); err != nil {
			return mismatch(err.Error())
		}
	}
	return nil
}

// initialize opens a session, unless it is refused.
func (h *Streamable) initialize(w http.ResponseWriter, r *http.Request, req *dispatch.Request) *httpFault {
	k := h.clients.create()
	result, fault := h.d.Handle(tools.WithSession(r.Context(), k.tools), req, k.Session)
	if fault == nil {
		h.clients.keep(k)
		k.MarkReady()
		w.Header().Set(headerSession, k.SessionID())
	} else {
		k.end()
	}
	h.finish(&reply{w: w}, req, result, fault)
	return nil
}

// serveLegacy serves a message within a session.
func (h *Streamable) serveLegacy(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message, req *dispatch.Request) *httpFault {
	cancels := m.ID == nil && req.Method == dispatch.MethodCancelled
	if cancels && r.Header.Get(headerSession) == "" {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	k, leave, f := h.enter(r)
	if f != nil {
		f.id = m.ReplyID()
		return f
	}
	defer leave()
	switch {
	case m.IsResponse():
		k.questions.Answer(m)
	case cancels:
		h.clients.cancel(k, dispatch.CancelledID(m))
	case m.ID != nil:
		return h.serveCall(w, r, k, req)
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// enter finds the session of a request.
func (h *Streamable) enter(r *http.Request) (k *client, leave func(), f *httpFault) {
	if v := r.Header.Get(mcp.HeaderProtocolVersion); v != "" && !mcp.IsValidProtocolVersion(v) {
		return nil, nil, refuse(http.StatusBadRequest, "unsupported protocol version "+jsonrpc.Clip(v, 100))
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

func (h *Streamable) serveCall(w http.ResponseWriter, r *http.Request, k *client, req *dispatch.Request) *httpFault {
	ctx, end, ok := h.clients.begin(r.Context(), k, req.ID)
	if !ok {
		fault := jsonrpc.InFlight([]byte(req.ID))
		h.d.Refused(r.Context(), req, k, fault)
		return &httpFault{status: http.StatusBadRequest, err: fault}
	}
	defer end()
	h.answer(tools.WithSession(ctx, k.tools), w, r, req, func(p *reply) mcpserver.ClientSession {
		return &inquiry{Session: k.Session, questions: &k.questions, reply: p}
	})
	return nil
}

// noClient is the session of modern requests: each says of its client what matters.
func noClient(*reply) mcpserver.ClientSession { return dispatch.NewSession("", nil) }

// answer runs a request and writes what comes of it, also when it was
// cancelled: an HTTP request ends with a response.
func (h *Streamable) answer(ctx context.Context, w http.ResponseWriter, r *http.Request, req *dispatch.Request, who func(*reply) mcpserver.ClientSession) {
	p := &reply{w: w, streams: accepts(r, "text/event-stream")}
	if req.Subscribes(nil) {
		defer p.keepAlive(heartbeat)()
	}
	result, fault := h.d.Handle(tools.WithNotifier(ctx, p.notify), req, who(p))
	h.finish(p, req, result, fault)
}

// finish writes an answer. In the modern era errors have HTTP statuses.
func (h *Streamable) finish(p *reply, req *dispatch.Request, result any, fault *jsonrpc.Error) {
	status := http.StatusOK
	line, sent := req.Encode(result, fault)
	if sent != nil && req.Modern {
		status = statusOf(sent.Code)
	}
	p.finish(status, line)
}

func statusOf(code int) int {
	if code == mcp.METHOD_NOT_FOUND {
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// delete ends a session.
func (h *Streamable) delete(w http.ResponseWriter, r *http.Request) {
	_, leave, f := h.enter(r)
	if f != nil {
		f.write(w)
		return
	}
	leave()
	h.clients.remove(r.Header.Get(headerSession))
	w.WriteHeader(http.StatusOK)
}

// get streams notifications that answer no request.
func (h *Streamable) get(w http.ResponseWriter, r *http.Request) {
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
	ctx, notes, end := h.clients.listen(r.Context(), k, h.d.Router)
	defer end()
	h.stream(ctx, openEvents(w), notes)
}

func (h *Streamable) stream(ctx context.Context, e *events, notes <-chan mcp.JSONRPCNotification) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	err := e.alive()
	for err == nil {
		select {
		case n := <-notes:
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
