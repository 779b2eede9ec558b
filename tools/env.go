package tools

import (
	"context"
	"log/slog"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/tools/internal/skill"
)

// An Env is all that a tool may touch. One serves all calls of a server; what
// belongs to a session is found through the context (see [SessionOf]).
type Env struct {
	Files    *files.FS
	Limits   sandbox.Limits
	Settings Settings
	Log      *slog.Logger
	Skills   *skill.Engine // nil: no skills are served

	lists handles // what clients without a session come back to
}

// Settings are the start-up choices that change what tools list or answer.
type Settings struct {
	MaxOutput int           // bytes of text in a result; 0 = the profile's own budget
	Timeout   time.Duration // of commands without one; 0 = the tool's own default
	ReadOnly  bool          // tools that change files or run commands are left out
	Handles   bool          // the transport has no sessions to rely on: lists have a listId

	// CommandRules tells the model in two sentences what commands may touch
	// here; asked when a tool that runs commands is listed. May be nil.
	CommandRules func() string
}

// Budget returns the bytes of text that a result may hold: --max-output, or the
// profile's own number.
func (e *Env) Budget(own int) int {
	if e.Settings.MaxOutput > 0 {
		return e.Settings.MaxOutput
	}
	return own
}

// CommandTimeout returns the deadline of a command that asks for none:
// --timeout, or the tool's own number.
func (e *Env) CommandTimeout(own time.Duration) time.Duration {
	if e.Settings.Timeout > 0 {
		return e.Settings.Timeout
	}
	return own
}

// DescribeCommands adds the rules for commands to a tool's description.
func (e *Env) DescribeCommands(l *Listing) {
	if e.Settings.CommandRules != nil {
		l.Description += " " + e.Settings.CommandRules()
	}
}

// Shell returns the command runner of the call's session.
func (e *Env) Shell(ctx context.Context) *process.Shell { return SessionOf(ctx).Shell }

// Skills is the engine behind the skill tools, for programs that make an [Env].
type Skills = skill.Engine
