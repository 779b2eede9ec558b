package tasks

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/tools"
)

// The states of a task.
const (
	working       = "working"
	inputRequired = "input_required"
	completed     = "completed"
	failed        = "failed"
	cancelled     = "cancelled"
)

// A task is a call, before and after it is known by an id. Everything from id on is
// guarded by Registry.mu.
type task struct {
	g       *Registry
	cancel  context.CancelFunc
	created time.Time
	call    Call // empty once it is over

	begin, ask sync.Once
	begun      chan struct{} // closed by Begin
	asked      chan struct{} // closed by the first question
	decided    chan struct{} // closed when it is a task, or will never be one
	direct     chan answer   // of a call that has stayed one

	id        string // "" = a call as any other
	over      bool   // the work is done
	cancelled bool   // by its client
	release   func()
	status    string
	message   string        // how the work was getting on when it ended
	line      func() string // how it is getting on; nil = nothing is known
	updated   time.Time
	lifetime  time.Duration // from created; 0 = it has not ended
	result    json.RawMessage
	fault     *jsonrpc.Error
	questions map[string]*question // that the client has not answered
	numbered  int                  // questions so far
	watchers  map[*watcher]bool
	expiry    *time.Timer
}

var _ tools.Task = (*task)(nil)

// Begin implements [tools.Task].
func (t *task) Begin() { t.begin.Do(func() { close(t.begun) }) }

// Follow implements [tools.Task].
func (t *task) Follow(line func() string) {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	if !t.over {
		t.line = line
	}
}

// shown is what the work has to show; mu is held.
func (t *task) shown() string {
	if t.line == nil {
		return t.message
	}
	return t.line()
}

// size is what a result takes.
func (t *task) size() int { return len(t.result) }

// ring tells those that watch to look; mu is held.
func (t *task) ring() {
	for w := range t.watchers {
		w.ring()
	}
}

// A View is a task as its client sees it: the answer that it began, that of
// tasks/get, and the params of a notification.
type View struct {
	mcp.Result
	TaskID        string                     `json:"taskId"`
	Status        string                     `json:"status"`
	StatusMessage string                     `json:"statusMessage,omitempty"`
	CreatedAt     string                     `json:"createdAt"`
	LastUpdatedAt string                     `json:"lastUpdatedAt"`
	TTL           *int64                     `json:"ttlMs"`
	PollInterval  int64                      `json:"pollIntervalMs,omitempty"`
	Questions     map[string]json.RawMessage `json:"inputRequests,omitempty"`
	Outcome       json.RawMessage            `json:"result,omitempty"`
	Fault         *jsonrpc.Error             `json:"error,omitempty"`
}

// resultTypeTask is the resultType of an answer that is a task.
const resultTypeTask mcp.ResultType = "task"

// Created makes v the answer to the call that has become a task.
func (v *View) Created() *View {
	v.SetResultType(resultTypeTask)
	return v
}

// view is the task as it is now; mu is held.
func (t *task) view() *View {
	if message := t.shown(); message != t.message {
		t.message, t.updated = message, time.Now()
	}
	v := &View{
		TaskID: t.id, Status: t.status, StatusMessage: t.message, CreatedAt: stamp(t.created), LastUpdatedAt: stamp(t.updated),
		Outcome: t.result, Fault: t.fault,
	}
	if t.lifetime > 0 {
		ttl := t.lifetime.Milliseconds()
		v.TTL = &ttl
		return v
	}
	if v.PollInterval = pollSoon.Milliseconds(); time.Since(t.created) > laterAfter {
		v.PollInterval = pollLater.Milliseconds()
	}
	if len(t.questions) > 0 {
		v.Questions = map[string]json.RawMessage{}
		for key, q := range t.questions {
			v.Questions[key] = q.request
		}
	}
	return v
}

// stamp writes a time as ISO 8601 has it.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Get shows a task.
func (g *Registry) Get(id string) (*View, *jsonrpc.Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, fault := g.find(id)
	if fault != nil {
		return nil, fault
	}
	return t.view(), nil
}

// Cancel ends the work of a task. One that is over stays as it is.
func (g *Registry) Cancel(id string) *jsonrpc.Error {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, fault := g.find(id)
	if fault == nil && !t.over {
		t.cancelled = true
		t.cancel()
	}
	return fault
}
