package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

// A question is one that a task waits with.
type question struct {
	request json.RawMessage
	answer  chan *mcp.ElicitationResult
}

var (
	errNoAnswers = errors.New("the client cannot be asked")
	errNoTask    = errors.New("the client cannot be asked: the call could not become a task")
)

// RequestElicitation implements [tools.Asker]. A call that asks becomes a task at
// once: there is no other way to ask in the middle of it.
func (t *task) RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	t.ask.Do(func() { close(t.asked) })
	select {
	case <-t.decided:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	request, err := json.Marshal(map[string]any{"method": mcp.MethodElicitationCreate, "params": r.Params})
	if err != nil {
		return nil, err
	}
	key, q, err := t.pose(request)
	if err != nil {
		return nil, err
	}
	select {
	case result := <-q.answer:
		return result, nil
	case <-ctx.Done():
		t.withdraw(key)
		return nil, ctx.Err()
	}
}

// pose shows the client a question.
func (t *task) pose(request json.RawMessage) (key string, q *question, err error) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	switch {
	case t.id == "":
		return "", nil, errNoTask
	case !t.call.Answers || t.over:
		return "", nil, errNoAnswers
	}
	if t.questions == nil {
		t.questions = map[string]*question{}
	}
	t.numbered++ // a key is never used again
	key, q = "q"+strconv.Itoa(t.numbered), &question{request: request, answer: make(chan *mcp.ElicitationResult, 1)}
	t.questions[key] = q
	t.settle()
	return key, q, nil
}

func (t *task) withdraw(key string) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	if !t.over {
		delete(t.questions, key)
		t.settle()
	}
}

// settle makes the status what the open questions make of it; mu is held.
func (t *task) settle() {
	t.status, t.updated = working, time.Now()
	if len(t.questions) > 0 {
		t.status = inputRequired
	}
	t.ring()
}

// Update takes answers to questions. Those to no question are ignored; one that has
// not the form of an answer is refused, and all others with it.
func (g *Registry) Update(id string, responses map[string]json.RawMessage) *jsonrpc.Error {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, fault := g.find(id)
	if fault != nil {
		return fault
	}
	answers := map[string]*mcp.ElicitationResult{}
	for key := range t.questions {
		raw, given := responses[key]
		if !given {
			continue
		}
		var result mcp.ElicitationResult
		if json.Unmarshal(raw, &result) != nil || result.Action == "" {
			return jsonrpc.InvalidParams("inputResponses." + key + " is not an answer to a question: it must be an object with action (accept, decline or cancel) and, to accept, content")
		}
		answers[key] = &result
	}
	for key, result := range answers {
		t.questions[key].answer <- result
		delete(t.questions, key)
	}
	if len(answers) > 0 {
		t.settle()
	}
	return nil
}
