package stream

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

// maxInFlight bounds the requests of one connection that are being served.
const maxInFlight = 4096

// A Conn is one connection. One reader calls Receive with each message; answers
// leave through write, one message at a time.
//
// Notifications and initialize are handled before Receive returns, in the
// order they arrive. Every other request is served by Serve.
type Conn struct {
	d       *dispatch.Dispatcher
	session *dispatch.Session
	base    context.Context // of every call
	stop    context.CancelFunc
	write   func(line []byte) error

	lanes     lanes // the reader's
	tasks     sync.WaitGroup
	questions dispatch.Questions

	// Locks are taken in this order. Holding wmu alone while a line is written
	// lets the reader cancel calls even when the client does not read our output.
	wmu    sync.Mutex
	mu     sync.Mutex
	calls  map[string]*Call // by id, answered and cancelled ones not included
	slots  int              // goroutines that serve a request
	ended  bool             // nothing is received any more
	closed bool             // nothing is sent any more
	broken chan struct{}    // closed when a write has failed
}

// Open starts a connection whose session has the given id. write gets one
// line, line end included, and must not keep it. Everything else about ctx but its
// end holds for the calls.
func Open(ctx context.Context, d *dispatch.Dispatcher, id string, write func([]byte) error) (*Conn, error) {
	c := &Conn{d: d, write: write, lanes: lanes{}, calls: map[string]*Call{}, broken: make(chan struct{})}
	c.session = dispatch.NewSession(id, c.ask)
	notes := c.session.Listen()
	c.base, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	if len(d.Versions) > 0 {
		c.base = mcpserver.WithSupportedProtocolVersions(c.base, d.Versions)
	}
	if err := d.Router.RegisterSession(c.base, c.session); err != nil {
		c.stop()
		return nil, err
	}
	go c.forward(notes)
	return c, nil
}

// forward sends what mcp-go tells every client.
func (c *Conn) forward(notes <-chan mcp.JSONRPCNotification) {
	for {
		select {
		case n := <-notes:
			c.sendNotice("", n.Method, n.Params)
		case <-c.base.Done():
			return
		}
	}
}

// ask sends a request of ours and waits for the response. When ctx ends
// first, it takes the question back.
func (c *Conn) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return c.questions.Ask(ctx, func(id string) error {
		c.sendNotice(id, method, params)
		return nil
	}, func(id string) {
		c.sendNotice("", dispatch.MethodCancelled, map[string]string{"requestId": id})
	})
}

// refuse answers a message with an error, id nil for null.
func (c *Conn) refuse(b *jsonrpc.Batch, id []byte, e *jsonrpc.Error) {
	line := jsonrpc.EncodeError(id, e)
	if b == nil {
		c.send(line)
		return
	}
	b.Expect()
	c.sendLast(b.Add(id, line))
}

// sendLast sends a batch that has come to its end, nil when it has not.
func (c *Conn) sendLast(line []byte) {
	if line != nil {
		c.send(line)
	}
}

// sendNotice sends a notification, or a request of ours when id is not empty.
func (c *Conn) sendNotice(id, method string, params any) {
	line, err := jsonrpc.EncodeNotice(id, method, params)
	if err != nil {
		c.d.Log.Warn("notification dropped", "method", method)
		return
	}
	c.send(line)
}

func (c *Conn) send(line []byte) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	c.sendLocked(line)
}

// sendLocked writes a line; wmu is held. The first failure breaks the
// connection.
func (c *Conn) sendLocked(line []byte) {
	if c.isClosed() {
		return
	}
	if err := c.write(line); err != nil {
		c.d.Log.Debug("output is gone")
		c.mu.Lock()
		defer c.mu.Unlock()
		c.closed = true
		close(c.broken)
	}
}

// Broken is closed when a write has failed.
func (c *Conn) Broken() <-chan struct{} { return c.broken }

// Exclusively calls write, which may write to the stream itself, while nothing
// else is written; not any more after the connection is closed.
func (c *Conn) Exclusively(write func()) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if !c.isClosed() {
		write()
	}
}

// End stops receiving: open questions fail and subscriptions are closed
// without an answer. Calls run on.
func (c *Conn) End() {
	c.questions.Close()
	c.mu.Lock()
	c.ended = true
	var subscriptions []string
	for id, call := range c.calls {
		if call.Subscribes(c.d.Versions) {
			subscriptions = append(subscriptions, id)
		}
	}
	c.mu.Unlock()
	for _, id := range subscriptions {
		c.cancel(id)
	}
}

// Close cancels what still runs and forgets the session. Nothing is sent after
// it has returned but a line that is being written.
func (c *Conn) Close() {
	c.End()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.d.Router.UnregisterSession(context.WithoutCancel(c.base), c.session.SessionID())
}

// CloseAndWait closes the connection and waits for the line that is being written:
// afterwards the stream may be taken away.
func (c *Conn) CloseAndWait() {
	c.Close()
	c.wmu.Lock()
	defer c.wmu.Unlock()
}

// idle returns a channel that is closed when no request is being served; call
// it after end.
func (c *Conn) idle() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		c.tasks.Wait()
		close(done)
	}()
	return done
}

// inFlight is how many requests are being served, cancelled ones included.
func (c *Conn) inFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slots
}

func (c *Conn) hasEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}
