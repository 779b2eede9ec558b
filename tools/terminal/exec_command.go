package terminal

import (
	"context"
	"errors"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/tools"
)

type execCommandIn struct {
	Cmd         string            `json:"cmd" minLength:"1" nul:"no" doc:"Command line for the shell."`
	Workdir     string            `json:"workdir" default:"." nul:"no" doc:"Directory to run in, inside the workspace."`
	Shell       string            `json:"shell,omitempty" nul:"no" doc:"Program that takes -c; bash, where there is none sh."`
	Env         map[string]string `json:"env,omitempty" nul:"no" doc:"Variables to add."`
	TTY         bool              `json:"tty" default:"false" doc:"Run it on a terminal: for REPLs, prompts, editors. Else stdin is a pipe."`
	Rows        int64             `json:"rows" default:"24" min:"1" max:"1000" doc:"Lines of the terminal."`
	Cols        int64             `json:"cols" default:"80" min:"1" max:"1000" doc:"Columns of the terminal."`
	YieldTimeMS int64             `json:"yield_time_ms" default:"10000" min:"250" max:"60000" doc:"How long to wait for its end."`
	MaxOutput   *int64            `json:"max_output,omitempty" min:"0" max:"1048576" doc:"Bytes of output in the answer."`
}

var execCommand = tools.Define(tools.Info{
	Name: "exec_command", Title: "Start command", Effect: tools.Runs, View: tools.ViewTerminal, Budget: budget,
	Description: "Start a shell command that may run for ever. Answers when it has ended, waits for input, or yield_time_ms is over; " +
		"then it runs on, also when this call is cancelled, until it ends, kill_session ends it, or the session does.",
	Adapt: func(env *tools.Env, l *tools.Listing) {
		env.DescribeCommands(l)
	},
}, func(ctx context.Context, env *tools.Env, in execCommandIn) (answer, error) {
	dir, err := env.Files.ResolveDir(in.Workdir)
	if err != nil {
		return answer{}, err
	}
	r, err := start(ctx, env, in, process.Command{
		Name: in.Shell, Args: []string{"-c", in.Cmd}, Dir: dir.Abs, Label: in.Cmd, Env: in.Env, Without: []string{"BASH_ENV", "ENV"},
	})
	if err != nil {
		return answer{}, err
	}
	err = env.Follow(ctx, r, func() error {
		return r.Await(ctx, time.Duration(in.YieldTimeMS)*time.Millisecond, 0, 0)
	})
	if err != nil {
		env.Lost(ctx, r)
		return answer{}, err
	}
	return show(ctx, r, nil, budgetOf(env, in.MaxOutput)), nil
})

// terminalType is what every machine knows and programs keep plain text with.
const terminalType = "xterm"

// start starts a command with the shell that was asked for, or else bash or sh.
func start(ctx context.Context, env *tools.Env, in execCommandIn, c process.Command) (*process.Running, error) {
	if in.TTY {
		c.Terminal = &process.Size{Rows: uint16(in.Rows), Columns: uint16(in.Cols)}
		if _, given := in.Env["TERM"]; !given {
			c.Env = map[string]string{"TERM": terminalType}
			for name, value := range in.Env {
				c.Env[name] = value
			}
		}
	}
	if c.Name != "" {
		return env.Start(ctx, c)
	}
	c.Name = "bash"
	r, err := env.Start(ctx, c)
	if errors.Is(err, process.ErrNoProgram) {
		c.Name = "sh"
		r, err = env.Start(ctx, c)
	}
	return r, err
}
