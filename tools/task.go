package tools

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
)

// A Task is a call whose client may stop waiting for it and come back for the
// result. The tool does not decide when: it only says how far it is.
type Task interface {
	// Begin says that all questions that come before the work are settled. Until
	// then the client waits for the answer, which may be one of them.
	Begin()
	// Follow tells how to get a line that says how the work is getting on.
	Follow(line func() string)
	// Asker asks in the middle of the work. The client is shown the question as soon
	// as it looks at the task.
	Asker
}

type taskKey struct{}

// WithTask returns a context whose call may become t.
func WithTask(ctx context.Context, t Task) context.Context {
	return context.WithValue(ctx, taskKey{}, t)
}

// TaskOf returns what the call in ctx may become, nil when its client waits for
// every answer.
func TaskOf(ctx context.Context) Task {
	t, _ := ctx.Value(taskKey{}).(Task)
	return t
}

// begin says so for a call of a tool that runs commands: all others are over soon.
func (t *Tool) begin(ctx context.Context) {
	if t.Effect != Runs {
		return
	}
	if task := TaskOf(ctx); task != nil {
		task.Begin()
	}
}

// An Asker asks the user of the client that a call came from, and waits for the
// answer.
type Asker interface {
	RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error)
}

type askerKey struct{}

// WithAsker returns a context whose call asks through a.
func WithAsker(ctx context.Context, a Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// askerOf returns the asker of the call in ctx, nil when its client cannot be asked.
func askerOf(ctx context.Context) Asker {
	a, _ := ctx.Value(askerKey{}).(Asker)
	return a
}

// A Notifier writes one notification onto the channel that will carry the
// result of the call in ctx, before that result. It returns once the
// notification is written, and drops it when the call has been answered or
// cancelled. params is marshalled to JSON.
type Notifier func(method string, params any)

type notifierKey struct{}

// WithNotifier returns a context whose call notifies through n.
func WithNotifier(ctx context.Context, n Notifier) context.Context {
	return context.WithValue(ctx, notifierKey{}, n)
}

// NotifierFrom returns the notifier of the call in ctx, nil when there is none.
func NotifierFrom(ctx context.Context) Notifier {
	n, _ := ctx.Value(notifierKey{}).(Notifier)
	return n
}
