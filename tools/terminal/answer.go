package terminal

import (
	"bytes"
	"context"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/screen"
)

// An answer is what a command has come to.
type answer struct {
	Status     string `json:"status" enum:"running,exited" doc:"exited: it has ended."`
	SessionID  string `json:"session_id" doc:"For the other tools."`
	Output     string `json:"output" doc:"What came since the last answer, or from offset; both streams, as a terminal shows them."`
	Offset     int64  `json:"offset" doc:"Where output begins, in bytes."`
	NextOffset int64  `json:"next_offset" doc:"Where it goes on."`
	ExitCode   *int   `json:"exit_code,omitempty" doc:"128+n when signal n ended it."`
	Signal     string `json:"signal,omitempty" doc:"What ended it."`
	DurationMS int64  `json:"duration_ms" doc:"How long it has run."`
	Truncated  bool   `json:"truncated,omitempty" doc:"The middle of output is cut."`
	NeedsInput bool   `json:"needs_input,omitempty" doc:"It waits for input."`
	Hint       string `json:"hint,omitempty" doc:"password: what is typed is not shown. Or what the sandbox kept it from."`
}

const (
	running = "running"
	exited  = "exited"
)

// show answers with the output of a command from an offset on; nil means what no
// answer has shown.
func show(ctx context.Context, r *process.Running, offset *int64, most int) answer {
	from := int64(-1)
	if offset != nil {
		from = *offset
	}
	result, over := r.Result() // before the output is looked at: what it wrote last belongs to the answer
	needs := r.Needs()
	part := r.Output(from, func(p capture.Part) int {
		if over {
			return 0
		}
		if p.Missed > 0 {
			return screen.Held(p.Last)
		}
		return screen.Held(p.First)
	})
	a := answer{Status: running, SessionID: r.ID, Offset: part.From, NextOffset: part.To,
		DurationMS: result.Duration.Milliseconds(), NeedsInput: needs.Input}
	if a.Output, a.Truncated = text(part, most); !a.Truncated {
		tools.ShowOutput(ctx, func() string { return screen.Coloured(append(bytes.Clone(part.First), part.Last...)) })
	}
	switch {
	case over:
		a.Status, a.ExitCode, a.Signal, a.Hint = exited, &result.ExitCode, result.Signal, tools.RefusedHint(result)
	case needs.Quiet:
		a.Hint = "password"
	}
	return a
}

// text is a part of the output as it is shown, its middle cut when long.
func text(p capture.Part, most int) (text string, cut bool) {
	first, last := screen.Text(p.First), screen.Text(p.Last)
	if p.Missed > 0 { // no more is known at either end
		if len(first) < min(most/2, len(last)) {
			p.Missed, first = p.Missed+int64(len(first)), ""
		}
		most = min(most, 2*len(last))
	}
	all := capture.Output{Head: []byte(first), Tail: []byte(last)}
	all.TextBytes = int64(len(first) + len(last))
	all.Total = all.TextBytes + p.Missed
	return all.Text(most)
}

// budgetOf is how much text an answer may hold.
func budgetOf(env *tools.Env, asked *int64) int {
	if asked != nil {
		return int(*asked)
	}
	return env.Budget(budget)
}

// find returns the command that a call means.
func find(ctx context.Context, env *tools.Env, id string) (*process.Running, error) {
	return env.Running(ctx, id)
}
