package perstack

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/tools"
)

type execIn struct {
	Command string            `json:"command" minLength:"1" nul:"no" doc:"Program to run: a bare name is searched in PATH; with / it is relative to cwd, or absolute."`
	Args    []string          `json:"args" nul:"no" doc:"Arguments, passed as they are; no shell sees them."`
	Env     map[string]string `json:"env" nul:"no" doc:"Variables to add or replace."`
	Cwd     string            `json:"cwd" nul:"no" doc:"Directory to run in; empty or . is the workspace."`
	Stdout  bool              `json:"stdout" doc:"Whether to return standard output."`
	Stderr  bool              `json:"stderr" doc:"Whether to return standard error."`
	Timeout *int64            `json:"timeout,omitempty" min:"0" max:"86400000" doc:"Milliseconds after which it is ended; 0 = never."`
}

type execOut struct {
	Output    string `json:"output" doc:"Standard output, then standard error, as far as they were asked for."`
	Truncated bool   `json:"truncated,omitempty" doc:"True when the middle of the output was cut."`
	Hint      string `json:"hint,omitempty" doc:"How to get what was cut, and what the sandbox kept the command from."`
}

// execFailure is what an error carries besides: what was asked to be seen.
type execFailure struct {
	ExitCode  *int   `json:"exitCode,omitempty"`
	Stdout    string `json:"stdout,omitempty"`
	Stderr    string `json:"stderr,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

const (
	noOutput = "Command executed successfully, but produced no output."
	cutHint  = "Send the output to a file and read parts of it with readTextFile."
)

var exec = tools.Define(tools.Info{
	Name: "exec", Title: "Run command", Effect: tools.Runs, View: tools.ViewTerminal, Budget: budget,
	Description: "Run one program, without a shell, in the workspace. For pipes and redirections run sh with the arguments -c and the command line. Standard input is empty. Not for programs that never end.",
	Adapt: func(env *tools.Env, l *tools.Listing) {
		l.Input.Field("timeout").Default = float64(env.CommandTimeout(commandTimeout).Milliseconds())
		env.DescribeCommands(l)
	},
}, func(ctx context.Context, env *tools.Env, in execIn) (out execOut, err error) {
	dir, err := workingDirectory(env, in.Cwd)
	if err != nil {
		return out, err
	}
	keep := env.Budget(budget)
	result, err := env.Run(ctx, process.Command{
		Name: in.Command, Args: in.Args, Env: in.Env, Dir: dir, Keep: keep,
		Stdout: in.Stdout, Stderr: in.Stderr, Timeout: time.Duration(*in.Timeout) * time.Millisecond,
	})
	if err != nil {
		return out, err
	}
	stdout, stderr, cut := capture.Cut(result.Stdout, result.Stderr, keep)
	if result.ExitCode != 0 || result.TimedOut || result.Cancelled {
		longer := env.Longer(result, time.Duration(*in.Timeout)*time.Millisecond, commandTimeout, "timeout", sandbox.DefaultLimits.MaxTimeout.Milliseconds())
		return out, failure(result, *in.Timeout, longer, execFailure{Stdout: stdout, Stderr: stderr, Truncated: cut})
	}
	if out.Output = stdout + stderr; strings.TrimSpace(out.Output) == "" {
		out.Output = noOutput
	}
	if cut {
		out.Truncated, out.Hint = true, cutHint
	}
	out.Hint = tools.JoinHints(tools.RefusedHint(result), out.Hint)
	return out, nil
})

// workingDirectory checks cwd, in the words of this tool.
func workingDirectory(env *tools.Env, cwd string) (string, error) {
	if cwd == "" {
		cwd = "."
	}
	at, err := env.Files.ResolveDir(cwd)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", tools.Errorf(fault.NotFound, "", "The directory given as cwd does not exist: %s", cwd)
	case errors.Is(err, sandbox.ErrNotDirectory):
		return "", tools.Errorf(fault.UnsupportedType, "", "%s, given as cwd, is a file, not a directory.", cwd)
	case errors.Is(err, sandbox.ErrBadPath):
		return "", tools.Errorf(fault.BadInput, "", "cwd is not usable: %v.", err)
	}
	return at.Abs, err
}

// failure words a command that ran and did not succeed.
func failure(r process.Result, timeout int64, longer string, shown execFailure) error {
	e := tools.Errorf(fault.Failed, "", "Command failed with exit code %d.", r.ExitCode)
	switch {
	case r.TimedOut:
		e = tools.Errorf(fault.TimedOut, "", "Command timed out after %dms.", timeout)
	case r.Cancelled:
		e = tools.Errorf(fault.Cancelled, "", "Command was cancelled.")
	case r.Signal != "":
		e.Msg = "Command was ended by signal " + r.Signal + "."
		shown.ExitCode = &r.ExitCode
	default:
		shown.ExitCode = &r.ExitCode
	}
	if e.Hint = tools.JoinHints(tools.RefusedHint(r), longer); shown.Truncated {
		e.Hint = tools.JoinHints(e.Hint, cutHint)
	}
	e.Data = shown
	return e
}
