package process

import (
	"context"

	"github.com/perstack-ai/perstack-base/sandbox/trace"
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
func beginSpan(ctx context.Context, c *Command) context.Context {
	ctx, c.span = trace.Start(ctx, spanCommand)
	return ctx
}

// endSpan ends the span of a command that was started.
func (s *Shell) endSpan(span *trace.Span, res *Result, written int64) {
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
	span.Text(attrTier, s.tier())
	span.Int(attrRefusals, int64(len(res.Refused)))
	if res.ExitCode != 0 || res.TimedOut || res.Cancelled {
		span.Fail()
	}
	span.End()
}

// tier is what confines the session's commands, in the words of users.
func (s *Shell) tier() string {
	switch {
	case s.away != nil:
		return "container"
	case !s.session.confined():
		return "none"
	case s.c.confinement.chose(Namespaces):
		return "namespaces"
	}
	return "landlock"
}
