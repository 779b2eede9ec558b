package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/process"
)

// Start starts a command that outlives the call. It belongs to the session, and
// where there is none to the clients that have its id.
func (e *Env) Start(ctx context.Context, c process.Command) (*process.Running, error) {
	session := SessionOf(ctx)
	start := session.Shell.Start
	if session.OneCall {
		start = session.Shell.StartApart
	}
	r, err := start(ctx, c)
	var many *process.TooManyError
	if errors.As(err, &many) {
		hint := "End one that is not needed any more, or wait until one has ended."
		if len(many.IDs) > 0 {
			hint = "End one that is not needed any more. Running: " + strings.Join(many.IDs, ", ") + "."
		}
		return nil, &Error{Code: fault.Unavailable, Msg: sentence(fmt.Sprintf("%d commands run already, as many as may", many.Most)), Hint: hint, Err: err}
	}
	return r, err
}

// Running returns a command that Start has started.
func (e *Env) Running(ctx context.Context, id string) (*process.Running, error) {
	session := SessionOf(ctx)
	if session.OneCall {
		if r := session.Shell.RunningApart(id); r != nil {
			return r, nil
		}
		return nil, Errorf(fault.NotFound, "", "session_id %q is unknown or has expired.", id)
	}
	if r := session.Shell.Running(id); r != nil {
		return r, nil
	}
	ids := make([]string, 0)
	for _, r := range session.Shell.AllRunning() {
		ids = append(ids, r.ID)
	}
	known := "There is none in this session."
	if len(ids) > 0 {
		known = "This session has " + strings.Join(ids, ", ") + "."
	}
	return nil, Errorf(fault.NotFound, known, "session_id %q is unknown or has expired.", id)
}

// Lost is for a command whose id its client will not be told, because the call that
// started it was cancelled. In a session the client finds it in the list; where there
// is none no client could come back to it, so it ends.
func (e *Env) Lost(ctx context.Context, r *process.Running) {
	if SessionOf(ctx).OneCall {
		_ = r.Kill(ctx, syscall.SIGTERM)
	}
}

// AllRunning lists the commands of the session; none where there are no sessions,
// for no client may see those of others.
func (e *Env) AllRunning(ctx context.Context) []*process.Running {
	if session := SessionOf(ctx); !session.OneCall {
		return session.Shell.AllRunning()
	}
	return nil
}

// Follow waits for a command as wait does, and tells the client meanwhile how it is
// getting on, when it asked for that.
func (e *Env) Follow(ctx context.Context, r *process.Running, wait func() error) error {
	p := startProgress(ctx, r.Last)
	err := wait()
	if result, over := r.Result(); over {
		p.finish(outcome(result))
		showRun(ctx, result)
	} else {
		p.finish("still running")
	}
	return err
}
