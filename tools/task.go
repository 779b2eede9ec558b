package tools

import "context"

// A Task is a call whose client may stop waiting for it and come back for the
// result. When that is, is not the tool's affair: it only says how far it is.
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
