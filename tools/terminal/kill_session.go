package terminal

import (
	"context"
	"syscall"

	"github.com/perstack-ai/perstack-base/tools"
)

type killSessionIn struct {
	SessionID string `json:"session_id" minLength:"1" doc:"From exec_command."`
	Signal    string `json:"signal" default:"TERM" enum:"TERM,INT,HUP,QUIT,KILL" doc:"Sent first; KILL follows after 2 s."`
}

var signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "KILL": syscall.SIGKILL,
}

var killSession = tools.Define(tools.Info{
	Name: "kill_session", Title: "End command", Effect: tools.Steers, View: tools.ViewTerminal, Budget: budget,
	Description: "End a command of exec_command and all that it started, and answer with what it still wrote.",
}, func(ctx context.Context, env *tools.Env, in killSessionIn) (answer, error) {
	r, err := find(ctx, env, in.SessionID)
	if err != nil {
		return answer{}, err
	}
	if err := env.Follow(ctx, r, func() error { return r.Kill(ctx, signals[in.Signal]) }); err != nil {
		return answer{}, err
	}
	return show(ctx, r, nil, env.Budget(budget)), nil
})
