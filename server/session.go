package server

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// A session is the client as mcp-go sees it. The one of a connection serves
// its legacy requests. Every modern request has one of its own, with the same
// id, because what one request says of its client holds for no other.
type session struct {
	id    string
	notes chan mcp.JSONRPCNotification // nil: nothing is ever sent unasked
	conn  *conn                        // nil: the client cannot be asked

	mu      sync.Mutex
	ready   bool
	info    mcp.Implementation
	caps    mcp.ClientCapabilities
	version string
}

var (
	_ mcpserver.SessionWithClientInfo      = (*session)(nil)
	_ mcpserver.SessionWithProtocolVersion = (*session)(nil)
	_ mcpserver.SessionWithElicitation     = (*session)(nil)
)

// noteBacklog is how many list_changed may wait for the writer. More are
// dropped: one tells the client as much as ten.
const noteBacklog = 64

func (s *session) SessionID() string { return s.id }

func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notes }

// Initialize does nothing: mcp-go calls it before the answer to initialize is
// written, and nothing may go out ahead of that. See greet.
func (s *session) Initialize() {}

// greet makes the session ready for notifications.
func (s *session) greet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
}

func (s *session) Initialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

func (s *session) GetClientInfo() mcp.Implementation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

func (s *session) SetClientInfo(info mcp.Implementation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info = info
}

func (s *session) GetClientCapabilities() mcp.ClientCapabilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caps
}

func (s *session) SetClientCapabilities(caps mcp.ClientCapabilities) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caps = caps
}

func (s *session) ProtocolVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// SetProtocolVersion records what initialize has agreed on.
func (s *session) SetProtocolVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// errClientGone ends a question that can no longer be answered.
var errClientGone = errors.New("the client has closed the connection")

// RequestElicitation asks the client and waits for its answer, until ctx or
// the input ends.
func (s *session) RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	if s.conn == nil {
		return nil, mcpserver.ErrElicitationNotSupported
	}
	return s.elicit(ctx, r, s.conn.ask)
}

// An asker sends a request of ours to the client and waits for the response.
type asker func(ctx context.Context, method string, params any) ([]byte, error)

func (s *session) elicit(ctx context.Context, r mcp.ElicitationRequest, ask asker) (*mcp.ElicitationResult, error) {
	if s.GetClientCapabilities().Elicitation == nil {
		return nil, mcpserver.ErrElicitationNotSupported
	}
	raw, err := ask(ctx, string(mcp.MethodElicitationCreate), r.Params)
	if err != nil {
		return nil, err
	}
	var result mcp.ElicitationResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, errors.New("the client's answer is not an elicitation result")
	}
	return &result, nil
}

// An answer is what the client made of a question of ours.
type answer struct {
	result []byte
	err    error
}

// ask sends a request of ours and waits for the response. When ctx ends
// first, it takes the question back.
func (c *conn) ask(ctx context.Context, method string, params any) ([]byte, error) {
	id, ch := c.openAsk()
	if ch == nil {
		return nil, errClientGone
	}
	defer c.closeAsk(id)
	c.sendNotice(id, method, params)
	select {
	case a := <-ch:
		return a.result, a.err
	case <-ctx.Done():
		c.sendNotice("", methodCancelled, map[string]string{"requestId": id})
		return nil, ctx.Err()
	}
}

func (c *conn) openAsk() (string, chan answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return "", nil
	}
	c.asked++
	id := "srv-" + strconv.FormatUint(c.asked, 10)
	ch := make(chan answer, 1)
	c.asks[id] = ch
	return id, ch
}

func (c *conn) closeAsk(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asks, id)
}

// answered passes a response on to the call that waits for it. One to nothing
// we asked is ignored.
func (c *conn) answered(m *message) {
	if !isString(m.id) {
		return
	}
	a := answerOf(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	id := string(unquote(m.id))
	if ch, ok := c.asks[id]; ok {
		delete(c.asks, id)
		ch <- a
	}
}

func answerOf(m *message) answer {
	a := answer{result: append([]byte(nil), m.result...)}
	if m.result == nil {
		a.err = errors.New("the client has refused to answer")
	}
	return a
}
