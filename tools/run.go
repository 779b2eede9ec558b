package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox"
)

// Run runs a command in the call's session and tells the client how it is
// getting on, when it asked for that.
func (e *Env) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	c.Tail = &sandbox.Tail{}
	p := startProgress(ctx, c.Tail.Last)
	result, err := e.Shell(ctx).Run(ctx, c)
	if err != nil {
		p.finish("not started")
		return result, err
	}
	p.finish(outcome(result))
	return result, nil
}

// outcome says in a few words how a command ended.
func outcome(r sandbox.Result) string {
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
func startSentence(e *sandbox.StartError) string {
	switch {
	case errors.Is(e.Err, sandbox.ErrEnvName):
		return fmt.Sprintf("env has a variable named %q; a name must not be empty or contain = or NUL.", e.What)
	case errors.Is(e.Err, sandbox.ErrHasNUL):
		return e.What + " must not contain NUL."
	case errors.Is(e.Err, sandbox.ErrArgsTooLong):
		return fmt.Sprintf("Command %q has more arguments and environment than the system takes.", e.Command)
	}
	return sentence(fmt.Sprintf("Command %q %v", e.Command, e.Err))
}

// Unconfined tells what is missing when commands are refused because this
// machine cannot confine them.
func Unconfined(err error) (missing string, refused bool) {
	if !errors.Is(err, sandbox.ErrUnconfined) {
		return "", false
	}
	return strings.TrimSuffix(strings.TrimPrefix(err.Error(), sandbox.ErrUnconfined.Error()+": "), "."), true
}

// RefusedHint tells what the sandbox kept a command from, "" for nothing.
func RefusedHint(r sandbox.Result) string { return strings.Join(r.Refused, "\n") }

// JoinHints joins what two have to say, each perhaps nothing.
func JoinHints(a, b string) string { return strings.TrimSpace(a + "\n" + b) }
