package baseagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

type shellCommandIn struct {
	Command   string `json:"command" minLength:"1" nul:"no" doc:"Command line for bash, where there is none for sh."`
	Workdir   string `json:"workdir" default:"." minLength:"1" nul:"no" doc:"Directory to run in, inside the workspace."`
	TimeoutMS *int64 `json:"timeout_ms,omitempty" type:"number" min:"1" max:"86400000" doc:"Milliseconds after which the command is ended."`
}

var shellCommand = tools.Define(tools.Info{
	Name: "shell_command", Title: "Run shell command", Effect: tools.Runs, View: tools.ViewTerminal, NoOutputSchema: true, Budget: budget,
	Description: "Run a shell command line in the workspace. Give workdir rather than cd. Prefer rg to grep. Set timeout_ms for long work. Standard input is empty; not for programs that never end.",
	Adapt: func(env *tools.Env, l *tools.Listing) {
		l.Input.Field("timeout_ms").Default = float64(env.CommandTimeout(commandTimeout).Milliseconds())
		env.DescribeCommands(l)
	},
}, func(ctx context.Context, env *tools.Env, in shellCommandIn) (answer, error) {
	if strings.TrimSpace(in.Command) == "" {
		return answer{}, &tools.ArgError{Problem: tools.ArgEmpty, Names: []string{"command"}}
	}
	dir, err := env.Files.ResolveDir(in.Workdir)
	if err != nil {
		return answer{}, directory(env, in.Workdir, err)
	}
	result, err := runShell(ctx, env, process.Command{
		Args: []string{"-c", in.Command}, Dir: dir.Abs, Without: []string{"BASH_ENV", "ENV"},
		Stdout: true, Stderr: true, Keep: 2*env.Budget(budget) + commandSlack,
		Timeout: time.Duration(*in.TimeoutMS) * time.Millisecond,
	})
	if err != nil {
		return answer{}, err
	}
	if result.Cancelled {
		return answer{}, tools.Errorf(fault.Cancelled, "", "Command was cancelled.")
	}
	longer := env.Longer(result, time.Duration(*in.TimeoutMS)*time.Millisecond, commandTimeout, "timeout_ms", sandbox.DefaultLimits.MaxTimeout.Milliseconds())
	return commandAnswer(result, *in.TimeoutMS, longer), nil
})

// commandSlack is kept of the output beyond what is shown: line feeds at its end
// are taken away.
const commandSlack = 4096

// runShell runs a command line with bash, or sh where there is no bash.
func runShell(ctx context.Context, env *tools.Env, c process.Command) (process.Result, error) {
	c.Name = "bash"
	result, err := env.Run(ctx, c)
	if errors.Is(err, process.ErrNoProgram) {
		c.Name = "sh"
		result, err = env.Run(ctx, c)
	}
	return result, err
}

// commandAnswer puts together what a command printed and how it ended.
func commandAnswer(r process.Result, timeoutMS int64, longer string) answer {
	a := answer{
		text: printed(capture.Join(r.Stdout, r.Stderr)), way: outcut.Advice("send the output to a file and read parts of it"),
		failed: r.TimedOut || r.ExitCode != 0,
	}
	refused := outcut.Whole(tools.RefusedHint(r))
	switch {
	case r.TimedOut:
		a.text = lines(outcut.Whole(fmt.Sprintf("Error: Command timed out after %d ms.", timeoutMS)), a.text)
		a.text = lines(lines(a.text, refused), outcut.Whole(longer))
	case r.ExitCode != 0:
		a.text = lines(a.text, refused)
		a.text = lines(a.text, outcut.Whole(fmt.Sprintf("[exit code: %d]", r.ExitCode)))
	default:
		if a.text.Total == 0 {
			a.text = outcut.Whole("(no output)")
		}
		a.text = lines(a.text, refused)
	}
	return a
}

// lines joins two texts by a line feed, unless one is empty.
func lines(a, b outcut.Text) outcut.Text {
	if a.Total == 0 || b.Total == 0 {
		return a.Append(b)
	}
	return a.Append(outcut.Whole("\n")).Append(b)
}

// printed is output as valid text without the line ends behind it.
func printed(o capture.Output) outcut.Text {
	if o.Complete() {
		whole := append(append([]byte(nil), o.Head...), o.Tail...)
		return outcut.Whole(strings.TrimRight(capture.ValidText(whole), "\r\n"))
	}
	tail := capture.ValidText(o.Tail)
	trimmed := strings.TrimRight(tail, "\r\n")
	return outcut.Text{Head: capture.ValidText(o.Head), Tail: trimmed, Total: o.TextBytes - int64(len(tail)-len(trimmed))}
}
