package terminal

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

// cmdBytes is how much of a command line is listed.
const cmdBytes = 200

func clipped(cmd string) string {
	if len(cmd) <= cmdBytes {
		return cmd
	}
	return outcut.Prefix(cmd, cmdBytes) + "..."
}

type listSessionsIn struct{}

type listSessionsOut struct {
	Sessions []listed `json:"sessions" doc:"In the order in which they were started; ended ones for 30 minutes."`
}

type listed struct {
	SessionID   string `json:"session_id" doc:"Its id."`
	Cmd         string `json:"cmd" doc:"The command line, its end cut when long."`
	Status      string `json:"status" enum:"running,exited" doc:"As in an answer."`
	DurationMS  int64  `json:"duration_ms" doc:"How long it has run."`
	OutputBytes int64  `json:"output_bytes" doc:"All that it has written."`
	ExitCode    *int   `json:"exit_code,omitempty" doc:"When it has ended."`
	Signal      string `json:"signal,omitempty" doc:"What ended it."`
}

var listSessions = tools.Define(tools.Info{
	Name: "list_sessions", Title: "List commands", Effect: tools.Watches,
	Description: "List the commands of this session that exec_command has started.",
}, func(ctx context.Context, env *tools.Env, _ listSessionsIn) (listSessionsOut, error) {
	out := listSessionsOut{Sessions: []listed{}}
	for _, r := range env.AllRunning(ctx) {
		result, over := r.Result()
		l := listed{SessionID: r.ID, Cmd: clipped(r.Label), Status: running, DurationMS: result.Duration.Milliseconds(), OutputBytes: r.Bytes()}
		if over {
			l.Status, l.ExitCode, l.Signal = exited, &result.ExitCode, result.Signal
		}
		out.Sessions = append(out.Sessions, l)
	}
	return out, nil
})
