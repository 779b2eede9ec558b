package perstack

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/plan"
)

type attemptCompletionIn struct {
	ListID string `json:"listId,omitempty" doc:"Which list; without it a client that has no session starts a new one."`
}

type attemptCompletionOut struct {
	RemainingTodos []plan.Todo `json:"remainingTodos,omitempty" doc:"The todos that are still open; absent when the work is done."`
	ListID         string      `json:"listId,omitempty" doc:"Id of the list that was started by this call."`
}

var attemptCompletion = tools.Define(tools.Info{
	Name: "attemptCompletion", Title: "Attempt completion", Budget: plan.MaxBytes, Fixed: true,
	Effect: tools.Reads, Lane: tools.LaneList, View: tools.ViewPlan,
	Description: "Say that the work is done. When todos are still open they come back in remainingTodos: finish them, or clear the list, and call again. An empty object means done.",
	Adapt:       tools.AdaptListID,
	OnFail: func(ctx context.Context, env *tools.Env, call *tools.Call, e *tools.Error) {
		// A runtime takes an answer without open todos for the end of the run, an error too.
		e.Data = attemptCompletionOut{RemainingTodos: todos.Look(ctx, env, call.Arg("listId")).Open()}
	},
}, func(ctx context.Context, env *tools.Env, in attemptCompletionIn) (out attemptCompletionOut, err error) {
	list, id, err := todos.Find(ctx, env, in.ListID)
	if err != nil {
		return out, err
	}
	showTodos(ctx, list)
	return attemptCompletionOut{RemainingTodos: list.Open(), ListID: id}, nil
})
