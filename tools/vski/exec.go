package vski

import (
	"context"
	"errors"
	"fmt"
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
	Command  string            `json:"command" minLength:"1" nul:"no" doc:"Command line, run as SHELL -c."`
	Shell    string            `json:"shell" default:"bash" minLength:"1" nul:"no" doc:"Program that takes -c: a bare name is looked up in PATH; with / it counts from cwd, or is absolute."`
	Timeout  *int64            `json:"timeout,omitempty" min:"1" max:"86400" doc:"Seconds after which the command is ended."`
	Cwd      *string           `json:"cwd,omitempty" nul:"no" doc:"Directory to run in, inside the workspace; left out, the workspace."`
	Env      map[string]string `json:"env,omitempty" nul:"no" doc:"Variables to add to the environment or to replace in it."`
	SourceRC bool              `json:"source_rc" default:"true" doc:"Read the shell's rc file first (bash, zsh)."`
}

type execOut struct {
	Success   bool    `json:"success" doc:"Whether the command ended with exit code 0."`
	Error     string  `json:"error,omitempty" doc:"Why it was not started, or that time was up; absent otherwise."`
	Command   string  `json:"command" doc:"The command as it was given."`
	Stdout    string  `json:"stdout" doc:"What it wrote to standard output."`
	Stderr    string  `json:"stderr" doc:"What it wrote to standard error."`
	ExitCode  int     `json:"exit_code" doc:"Its exit code, 128+n when signal n ended it, -1 when it was not started or did not end by itself."`
	TimedOut  bool    `json:"timed_out" doc:"Whether time was up."`
	Shell     string  `json:"shell" doc:"The shell that ran it."`
	Cwd       *string `json:"cwd" doc:"The directory as it was given, or null."`
	Truncated bool    `json:"truncated,omitempty" doc:"True when the middle of the output was cut."`
	Sandbox   string  `json:"sandbox,omitempty" doc:"What the sandbox kept it from."`
}

// notStarted is an error without output.
type notStarted struct {
	Success  bool   `json:"success"`
	Error    string `json:"error"`
	Command  string `json:"command"`
	ExitCode int    `json:"exit_code"`
	TimedOut bool   `json:"timed_out"`
}

// ended is an error with the output so far.
type ended struct {
	Success   bool   `json:"success"`
	Error     string `json:"error"`
	Command   string `json:"command"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	ExitCode  int    `json:"exit_code"`
	TimedOut  bool   `json:"timed_out"`
	Truncated bool   `json:"truncated,omitempty"`
	Sandbox   string `json:"sandbox,omitempty"`
	Hint      string `json:"hint,omitempty"`
}

const commandTimeout = 30 * time.Second

var exec = tools.Define(tools.Info{
	Name: "exec", Title: "Run shell command", Effect: tools.Runs, View: tools.ViewTerminal, Budget: budget,
	Description: "Run a shell command in the workspace. Standard input is empty; not for programs that never end.",
	Adapt: func(env *tools.Env, l *tools.Listing) {
		onlySuccess(env, l)
		own := env.CommandTimeout(commandTimeout)
		l.Input.Field("timeout").Default = float64((own + time.Second - 1) / time.Second)
		env.DescribeCommands(l)
	},
}, func(ctx context.Context, env *tools.Env, in execIn) (out execOut, err error) {
	dir := "."
	if in.Cwd != nil && *in.Cwd != "" {
		dir = *in.Cwd
	}
	at, err := env.Files.ResolveDir(dir)
	if err != nil {
		return out, notAt(err, dir)
	}
	result, err := env.Run(ctx, in.asCommand(env.Shell(ctx), at.Abs, env.Budget(budget)))
	if err != nil {
		return out, err
	}
	out = execOut{Command: in.Command, Shell: in.Shell, Cwd: in.Cwd, ExitCode: result.ExitCode, Success: result.ExitCode == 0}
	out.Stdout, out.Stderr, out.Truncated = capture.Cut(result.Stdout, result.Stderr, env.Budget(budget))
	out.Sandbox = tools.RefusedHint(result)
	longer := env.Longer(result, time.Duration(*in.Timeout)*time.Second, commandTimeout, "timeout", int64(sandbox.DefaultLimits.MaxTimeout.Seconds()))
	return out, out.notEnded(result, *in.Timeout, longer)
})

func (in execIn) asCommand(shell *process.Shell, dir string, keep int) process.Command {
	path, _ := shell.HostEnv("PATH")
	c := process.Command{
		Name: in.Shell, Args: []string{"-c", in.Command}, Path: path, Dir: dir,
		Env: in.Env, Without: []string{"BASH_ENV", "ENV"},
		Stdout: true, Stderr: true, Keep: keep, Timeout: time.Duration(*in.Timeout) * time.Second,
	}
	if in.SourceRC {
		c.Startup = startup(shell, in, dir)
	}
	return c
}

// notEnded is the error of a command that did not end by itself.
func (out execOut) notEnded(r process.Result, timeout int64, longer string) error {
	if !r.TimedOut && !r.Cancelled {
		return nil
	}
	e := tools.Errorf(fault.TimedOut, "", "Command timed out after %d seconds", timeout)
	if r.Cancelled {
		e = tools.Errorf(fault.Cancelled, "", "Command was cancelled")
	}
	e.Data = ended{
		Error: e.Msg, Command: out.Command, Stdout: out.Stdout, Stderr: out.Stderr,
		ExitCode: -1, TimedOut: r.TimedOut, Truncated: out.Truncated, Sandbox: out.Sandbox, Hint: longer,
	}
	return e
}

// cannot begins every error of a command that was not started.
const cannot = "Failed to execute command: "

// notAt words what is wrong with cwd.
func notAt(err error, cwd string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tools.Errorf(fault.NotFound, "", cannot+"No such file or directory (cwd: %s)", cwd)
	case errors.Is(err, sandbox.ErrNotDirectory):
		return tools.Errorf(fault.UnsupportedType, "", cannot+"Not a directory (cwd: %s)", cwd)
	}
	return err
}

// execMessage is the sentence of an error before the start.
func execMessage(e *tools.Error) string {
	var start *process.StartError
	var path *sandbox.PathError
	if missing, refused := tools.Unconfined(e.Err); refused {
		return cannot + missing
	}
	switch {
	case errors.As(e.Err, &start):
		return startMessage(start, strings.TrimSuffix(e.Msg, "."))
	case errors.As(e.Err, &path):
		return cannot + pathMessage(path)
	}
	return message(e)
}

func startMessage(e *process.StartError, other string) string {
	reasons := []struct {
		err  error
		text string
	}{
		{process.ErrNoProgram, "No such file or directory"},
		{process.ErrNotExecutable, "Permission denied"},
		{process.ErrBadFormat, "Exec format error"},
		{process.ErrArgsTooLong, "Argument list too long"},
	}
	for _, r := range reasons {
		if errors.Is(e.Err, r.err) {
			return fmt.Sprintf("%s%s (shell: %s)", cannot, r.text, e.Command)
		}
	}
	return other
}
