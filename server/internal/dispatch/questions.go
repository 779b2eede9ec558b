package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

// An Ask sends a request of ours to the client and waits for the result.
type Ask func(ctx context.Context, method string, params any) (json.RawMessage, error)

// RequestElicitation asks the client's user and waits for the answer, until ctx or
// the connection ends.
func (s *Session) RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return s.Elicit(ctx, r, s.ask)
}

// Elicit is RequestElicitation over a way to the client that is not the session's own.
func (s *Session) Elicit(ctx context.Context, r mcp.ElicitationRequest, ask Ask) (*mcp.ElicitationResult, error) {
	if ask == nil || s.GetClientCapabilities().Elicitation == nil {
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

// RequestSampling asks the client for a completion, as tools of an extension may.
func (s *Session) RequestSampling(ctx context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return s.Sample(ctx, r, s.ask)
}

// Sample is RequestSampling over a way to the client that is not the session's own.
func (s *Session) Sample(ctx context.Context, r mcp.CreateMessageRequest, ask Ask) (*mcp.CreateMessageResult, error) {
	if ask == nil || s.GetClientCapabilities().Sampling == nil {
		return nil, errors.New("the client cannot be asked for completions")
	}
	raw, err := ask(ctx, string(mcp.MethodSamplingCreateMessage), r.CreateMessageParams)
	if err != nil {
		return nil, err
	}
	var result mcp.CreateMessageResult
	if json.Unmarshal(raw, &result) != nil {
		return nil, errors.New("the client's answer is not a completion")
	}
	result.Content, err = mcp.ParseSamplingContent(result.Content)
	return &result, err
}

// ErrClientGone ends a question that can no longer be answered.
var ErrClientGone = errors.New("the client has closed the connection")

// Questions are the requests of ours that a client has not answered yet. The zero
// value is ready.
type Questions struct {
	mu     sync.Mutex
	asked  uint64
	open   map[string]chan reply
	closed bool
}

// A reply is what the client made of a question.
type reply struct {
	result json.RawMessage
	err    error
}

// Ask has send put a question to the client, and waits for the answer. When ctx
// ends first, it calls withdraw, which may be nil.
func (q *Questions) Ask(ctx context.Context, send func(id string) error, withdraw func(id string)) (json.RawMessage, error) {
	id, answer := q.begin()
	if answer == nil {
		return nil, ErrClientGone
	}
	defer q.end(id)
	if err := send(id); err != nil {
		return nil, err
	}
	select {
	case a := <-answer:
		return a.result, a.err
	case <-ctx.Done():
		if withdraw != nil {
			withdraw(id)
		}
		return nil, ctx.Err()
	}
}

func (q *Questions) begin() (string, <-chan reply) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return "", nil
	}
	if q.open == nil {
		q.open = map[string]chan reply{}
	}
	q.asked++
	id, answer := "srv-"+strconv.FormatUint(q.asked, 10), make(chan reply, 1)
	q.open[id] = answer
	return id, answer
}

func (q *Questions) end(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, id)
}

// Answer passes a response of the client on to the Ask that waits for it. A response
// that no Ask waits for is ignored.
func (q *Questions) Answer(m *jsonrpc.Message) {
	if !jsonrpc.IsString(m.ID) {
		return
	}
	a := reply{result: m.Result}
	if m.Result == nil {
		a.err = errors.New("the client has refused to answer")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	id := jsonrpc.Unquote(m.ID)
	if answer, ok := q.open[id]; ok {
		delete(q.open, id)
		answer <- a
	}
}

// Close fails every open question and all to come.
func (q *Questions) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for id, answer := range q.open {
		delete(q.open, id)
		answer <- reply{err: ErrClientGone}
	}
}
