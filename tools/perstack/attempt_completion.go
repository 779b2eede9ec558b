package perstack

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/plan"
)

type attemptCompletionIn struct{}

type attemptCompletionOut struct {
	RemainingTodos []plan.Todo `json:"remainingTodos,omitempty" doc:"The todos that are still open; absent when the work is done."`
}

var attemptCompletion = tools.Define(tools.Info{
	Name: "attemptCompletion", Title: "Attempt completion",
	Effect: tools.Reads, Lane: tools.LaneList,
	Description: "Say that the work is done. When todos are still open they come back in remainingTodos: finish them, or clear the list, and call again. An empty object means done.",
	OnFail: func(ctx context.Context, _ *tools.Env, e *tools.Error) {
		// A runtime takes an answer without open todos for the end of the run, an error too.
		e.Data = attemptCompletionOut{RemainingTodos: todos.Of(ctx).Open()}
	},
}, func(ctx context.Context, _ *tools.Env, _ attemptCompletionIn) (attemptCompletionOut, error) {
	return attemptCompletionOut{RemainingTodos: todos.Of(ctx).Open()}, nil
})
