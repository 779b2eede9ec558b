package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
)

// Run runs a command in the call's session and tells the client how it is
// getting on, when it asked for that.
func (e *Env) Run(ctx context.Context, c process.Command) (process.Result, error) {
	c.Tail = &capture.Tail{}
	p, start := startProgress(ctx, c.Tail.Last), time.Now()
	task := TaskOf(ctx)
	if task != nil {
		task.Follow(func() string {
			line, _ := c.Tail.Last()
			return gettingOn(line, time.Since(start))
		})
	}
	result, err := e.Shell(ctx).Run(ctx, c)
	end := "not started"
	if err == nil {
		end = outcome(result)
		showRun(ctx, result)
	}
	p.finish(end)
	if task != nil {
		last := endedAfter(end, time.Since(start))
		task.Follow(func() string { return last })
	}
	return result, err
}

// outcome says in a few words how a command ended.
func outcome(r process.Result) string {
	switch {
	case r.TimedOut:
		return "timed out"
	case r.Cancelled:
		return "cancelled"
	case r.Signal != "":
		return "ended by " + r.Signal
	}
	return fmt.Sprintf("exit code %d", r.ExitCode)
}

// startSentence says why a command was not started.
func startSentence(e *process.StartError) string {
	switch {
	case errors.Is(e.Err, process.ErrEnvName):
		return fmt.Sprintf("env has a variable named %q; a name must not be empty or contain = or NUL.", e.What)
	case errors.Is(e.Err, process.ErrHasNUL):
		return e.What + " must not contain NUL."
	case errors.Is(e.Err, process.ErrArgsTooLong):
		return fmt.Sprintf("Command %q has more arguments and environment than the system takes.", e.Command)
	}
	return sentence(fmt.Sprintf("Command %q %v", e.Command, e.Err))
}

// Unconfined tells what is missing when commands are refused because this
// machine cannot confine them.
func Unconfined(err error) (missing string, refused bool) {
	if !errors.Is(err, process.ErrUnconfined) {
		return "", false
	}
	return strings.TrimSuffix(strings.TrimPrefix(err.Error(), process.ErrUnconfined.Error()+": "), "."), true
}

// RefusedHint tells what the sandbox kept a command from, "" for nothing.
func RefusedHint(r process.Result) string { return strings.Join(r.Refused, "\n") }

// Longer says how work that takes longer gets the time, when the deadline that ended
// it was the one for calls that ask for none (own is the tool's): by an argument of
// the tool, up to most in its unit, and by the flag. A tool may have no argument.
func (e *Env) Longer(r process.Result, given, own time.Duration, argument string, most int64) string {
	const flag = "sk the user to set --timeout in the arguments of perstack-base, as in --timeout 10m."
	switch {
	case !r.TimedOut || given != e.CommandTimeout(own):
		return ""
	case argument == "":
		return "For longer work a" + flag
	}
	return fmt.Sprintf("For longer work set %s, at most %d, or a%s", argument, most, flag)
}

// JoinHints joins what two have to say, each perhaps nothing.
func JoinHints(a, b string) string { return strings.TrimSpace(a + "\n" + b) }
