package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// maxInFlight bounds the requests of one connection that are being served.
const maxInFlight = 4096

// A handler answers JSON-RPC messages; *mcpserver.MCPServer is one.
type handler interface {
	HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage
	WithContext(ctx context.Context, session mcpserver.ClientSession) context.Context
	RegisterSession(ctx context.Context, session mcpserver.ClientSession) error
	UnregisterSession(ctx context.Context, sessionID string)
}

// connConfig is what the connections of a server have in common.
type connConfig struct {
	handler handler
	// intercept answers what handler cannot; it is asked first, in the call's
	// goroutine. handled false passes the request on. May be nil.
	intercept func(ctx context.Context, r *request) (result any, err *rpcError, handled bool)
	// lane names the lane of a tool, "" for none. May be nil.
	lane func(tool string) string
	// versions are the protocol versions served, all when empty.
	versions []string
	log      *slog.Logger // nil: nothing is logged
}

// A conn is the dispatcher of one stream connection. One reader calls receive
// with each message; answers leave through write, one message at a time.
//
// Notifications and initialize are handled before receive returns, in the
// order they arrive. Every other request is served in a goroutine of its own.
type conn struct {
	cfg     connConfig
	session *session
	base    context.Context // of every call
	stop    context.CancelFunc
	write   func(line []byte) error

	lanes lanes  // the reader's
	seq   uint64 // the reader's
	tasks sync.WaitGroup

	// Locks are taken in this order. Holding wmu alone while a line is written
	// lets the reader cancel calls even when nobody reads our output.
	wmu    sync.Mutex
	mu     sync.Mutex
	calls  map[string]*call // by id, answered and cancelled ones not included
	slots  int              // goroutines that serve a request
	asks   map[string]chan answer
	asked  uint64
	ended  bool          // nothing is received any more
	closed bool          // nothing is sent any more
	broken chan struct{} // closed when a write has failed
}

// openConn starts a connection whose session has the given id. write gets one
// line, line end included, and must not keep it.
func openConn(ctx context.Context, cfg connConfig, id string, write func([]byte) error) (*conn, error) {
	if cfg.log == nil {
		cfg.log = slog.New(slog.DiscardHandler)
	}
	c := &conn{
		cfg: cfg, write: write, lanes: lanes{}, calls: map[string]*call{},
		asks: map[string]chan answer{}, broken: make(chan struct{}),
	}
	c.session = &session{id: id, conn: c, notes: make(chan mcp.JSONRPCNotification, noteBacklog)}
	c.base, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	if len(cfg.versions) > 0 {
		c.base = mcpserver.WithSupportedProtocolVersions(c.base, cfg.versions)
	}
	if err := cfg.handler.RegisterSession(c.base, c.session); err != nil {
		c.stop()
		return nil, err
	}
	go c.forward()
	return c, nil
}

// forward sends what mcp-go broadcasts to the connection.
func (c *conn) forward() {
	for {
		select {
		case n := <-c.session.notes:
			c.sendNotice("", n.Method, n.Params)
		case <-c.base.Done():
			return
		}
	}
}

// receive handles one message. text is not kept. It returns the call that the
// caller is to serve, nil when there is none, and must not be called again
// before it has returned: whoever serves lets somebody else read on.
func (c *conn) receive(text []byte) *call {
	if len(text) == 0 || c.hasEnded() {
		return nil
	}
	if fault := checkText(text); fault != nil {
		c.refuse(nil, nil, fault)
		return nil
	}
	if text[0] == '[' {
		c.receiveBatch(text)
		return nil
	}
	return c.receiveOne(text, nil)
}

// receiveOversize answers a message that was too long to be kept.
func (c *conn) receiveOversize(o *oversize) {
	if c.hasEnded() {
		return
	}
	c.cfg.log.Warn("message refused", "bytes", o.size, "limit", maxMessage)
	c.refuse(nil, recoverID(o.head, o.tail), oversizeError(o.size))
}

func oversizeError(size int64) *rpcError {
	return invalidRequest(fmt.Sprintf(
		"message of %d bytes exceeds the limit of %d bytes; send the content in smaller parts", size, maxMessage))
}

// notified handles a notification. Only one means something to us.
func (c *conn) notified(m *message) {
	if string(unquote(m.method)) == methodCancelled {
		c.cancel(string(m.requestID))
	}
}

// refuse answers a message with an error, id nil for null.
func (c *conn) refuse(b *batch, id []byte, e *rpcError) {
	buf := buffers.Get().(*bytes.Buffer)
	defer recycle(buf)
	encodeError(buf, id, e)
	if b == nil {
		c.send(buf.Bytes())
		return
	}
	b.expect()
	c.sendLast(b.add(id, buf.Bytes()))
}

// sendLast sends a batch that has come to its end, nil when it has not.
func (c *conn) sendLast(line []byte) {
	if line != nil {
		c.send(line)
	}
}

// sendNotice sends a notification, or a request of ours when id is not empty.
func (c *conn) sendNotice(id, method string, params any) {
	buf := buffers.Get().(*bytes.Buffer)
	defer recycle(buf)
	if err := encodeNotice(buf, id, method, params); err != nil {
		c.cfg.log.Warn("notification dropped", "method", method)
		return
	}
	c.send(buf.Bytes())
}

func (c *conn) send(line []byte) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	c.sendLocked(line)
}

// sendLocked writes a line; wmu is held. The first failure breaks the
// connection.
func (c *conn) sendLocked(line []byte) {
	if c.isClosed() {
		return
	}
	if err := c.write(line); err != nil {
		c.cfg.log.Debug("output is gone")
		c.mu.Lock()
		defer c.mu.Unlock()
		c.closed = true
		close(c.broken)
	}
}

// end stops receiving: open questions fail and subscriptions are closed
// without an answer. Calls run on.
func (c *conn) end() {
	c.mu.Lock()
	c.ended = true
	for id, ch := range c.asks {
		delete(c.asks, id)
		ch <- answer{err: errClientGone}
	}
	var listeners []string
	for id, call := range c.calls {
		if call.subscribes(c.cfg.versions) {
			listeners = append(listeners, id)
		}
	}
	c.mu.Unlock()
	for _, id := range listeners {
		c.cancel(id)
	}
}

// close cancels what still runs and forgets the session. Nothing is sent after
// it has returned but a line that is being written.
func (c *conn) close() {
	c.end()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.cfg.handler.UnregisterSession(context.WithoutCancel(c.base), c.session.id)
}

// idle returns a channel that is closed when no request is being served; call
// it after end.
func (c *conn) idle() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		c.tasks.Wait()
		close(done)
	}()
	return done
}

// inFlight is how many requests are being served, cancelled ones included.
func (c *conn) inFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slots
}

func (c *conn) hasEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *conn) laneOf(r *request) string {
	if c.cfg.lane == nil || r.tool == "" {
		return ""
	}
	return c.cfg.lane(r.tool)
}

// inFlightError names an id that is still in use.
func inFlightError(id []byte) *rpcError {
	return invalidRequest("request id " + clip(string(id), 200) + " is already in flight")
}
