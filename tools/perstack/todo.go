package perstack

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/plan"
)

type todoIn struct {
	NewTodos       []string `json:"newTodos,omitempty" doc:"Titles of tasks to append, in this order."`
	CompletedTodos []int64  `json:"completedTodos,omitempty" doc:"Ids of tasks to tick; tasks added in this call count."`
	ListID         string   `json:"listId,omitempty" doc:"Which list; without it a client that has no session starts a new one."`
}

type todoOut struct {
	Todos      []plan.Todo `json:"todos" doc:"The whole list, by id."`
	UnknownIDs []int64     `json:"unknownIds,omitempty" doc:"Ids in completedTodos that do not exist."`
	ListID     string      `json:"listId,omitempty" doc:"Id of the list that was started by this call."`
}

var todo = tools.Define(tools.Info{
	Name: "todo", Title: "Update todo list", Budget: plan.MaxBytes, Fixed: true,
	Effect: tools.Notes, Lane: tools.LaneList, View: tools.ViewPlan,
	Description: "Add tasks to the todo list, tick tasks as done, or show the list (no arguments). Ids count from 0 and stay.",
	Adapt:       tools.AdaptListID,
	OnFail:      withTodos,
}, func(ctx context.Context, env *tools.Env, in todoIn) (out todoOut, err error) {
	list, id, err := todos.Find(ctx, env, in.ListID)
	if err != nil {
		return out, err
	}
	showTodos(ctx, list)
	out.ListID = id
	out.UnknownIDs, err = list.Update(in.NewTodos, in.CompletedTodos)
	out.Todos = list.All()
	return out, err
})

// withTodos puts the unchanged list beside an error: a runtime's screen shows
// the todos of whatever comes back.
func withTodos(ctx context.Context, env *tools.Env, call *tools.Call, e *tools.Error) {
	e.Data = todoOut{Todos: todos.Look(ctx, env, call.Arg("listId")).All()}
}

// showTodos shows the list as it is before a call changes it.
func showTodos(ctx context.Context, list *plan.Todos) {
	tools.ShowPlan(ctx, func() []tools.PlanStep {
		all := list.All()
		shown := make([]tools.PlanStep, len(all))
		for i, t := range all {
			shown[i] = tools.PlanStep{Text: t.Title, Status: string(plan.Pending)}
			if t.Completed {
				shown[i].Status = string(plan.Completed)
			}
		}
		return shown
	})
}
