// Package perstack implements the API of the Perstack base skill: nine tools that a
// Perstack runtime relies on, usable by any MCP client. Start with [Profile]; each
// tool is in the file of its name.
package perstack

import (
	"time"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/plan"
)

// Profile is the Perstack base skill.
var Profile = &tools.Profile{
	Name:    "perstack",
	Summary: "The Perstack base skill: read, write, edit, run, and a todo list.",
	Instructions: "For several steps keep a list with todo and tick what is done. " +
		"Call attemptCompletion when all is done.",
	Dialect: tools.Objects{},
	Tools: []*tools.Tool{
		attemptCompletion,
		clearTodo,
		editTextFile,
		exec,
		readImageFile,
		readPdfFile,
		readTextFile,
		todo,
		writeTextFile,
	},
}

// Numbers of this API that more than one tool needs.
const (
	budget         = 131072           // bytes of text in a result
	commandTimeout = 55 * time.Second // the runtime gives up after 60
)

// todos is the list behind todo, clearTodo and attemptCompletion.
var todos = tools.NewState(func() *plan.Todos { return &plan.Todos{} }).Lists("Todo list", "todo", "todo_")
