package sandbox

import (
	"context"

	"github.com/perstack-ai/perstack-base/internal/trace"
)

// spanCommand names the span of a command.
const spanCommand = "command"

// Attributes of that span: how the command ended, and nothing of what it was.
const (
	attrExitCode    = "process.exit.code"
	attrSignal      = "perstack_base.signal"
	attrTimedOut    = "perstack_base.timed_out"
	attrCancelled   = "perstack_base.cancelled"
	attrOutputBytes = "perstack_base.output_bytes"
	attrTier        = "perstack_base.tier"
	attrRefusals    = "perstack_base.refusals"
)

// traceNames are the variables that say to which trace a program belongs. What the
// server was started with is not what its commands belong to.
var traceNames = []string{trace.EnvParent, trace.EnvState}

// beginSpan begins the span of a command, and has the program told of it.
func beginSpan(ctx context.Context, c *Command) (context.Context, *trace.Span) {
	ctx, span := trace.Start(ctx, spanCommand)
	c.trace = span.Env()
	return ctx, span
}

// endSpan ends the span of a command that was started.
func (j *job) endSpan(span *trace.Span, res *Result, written int64) {
	if span == nil {
		return
	}
	span.Int(attrExitCode, int64(res.ExitCode))
	if res.Signal != "" {
		span.Text(attrSignal, res.Signal)
	}
	span.Bool(attrTimedOut, res.TimedOut)
	span.Bool(attrCancelled, res.Cancelled)
	span.Int(attrOutputBytes, written)
	span.Text(attrTier, j.tier())
	span.Int(attrRefusals, int64(len(res.Refused)))
	if res.ExitCode != 0 || res.TimedOut || res.Cancelled {
		span.Fail()
	}
	span.End()
}

// endSpanUnstarted ends the span of a command that was not.
func endSpanUnstarted(span *trace.Span) {
	span.Fail()
	span.End()
}

// tier is what confined the command, in the words of users.
func (j *job) tier() string {
	switch {
	case j.cage == nil:
		return "none"
	case j.cage.tier == Namespaces:
		return "namespaces"
	}
	return "landlock"
}
