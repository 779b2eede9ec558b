// Package terminal has tools for commands that outlive a call: start one, look
// at it, write to it, end it, under names that agents know from elsewhere. Start with
// [Profile]; each tool is in the file of its name.
package terminal

import (
	"github.com/perstack-ai/perstack-base/tools"
)

// Profile is for commands that outlive a call.
var Profile = &tools.Profile{
	Name:    "terminal",
	Summary: "Commands that outlive a call: dev servers, REPLs, watchers, on a terminal or on pipes.",
	Instructions: "For what runs longer than a call or asks for input use exec_command; " +
		"look at it and type with write_stdin, and end it with kill_session.",
	Dialect: tools.Objects{},
	Tools: []*tools.Tool{
		execCommand,
		killSession,
		listSessions,
		writeStdin,
	},
}

// budget is how many bytes of text an answer holds, unless the call or a flag says.
const budget = 32768
