package perstack

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/plan"
)

type clearTodoIn struct {
	ListID string `json:"listId,omitempty" doc:"Which list; without it a client that has no session starts a new one."`
}

var clearTodo = tools.Define(tools.Info{
	Name: "clearTodo", Title: "Clear todo list", Budget: plan.MaxBytes, Fixed: true,
	Effect: tools.Clears, Lane: tools.LaneList, View: tools.ViewPlan,
	Description: "Drop the whole todo list and start over; ids count from 0 again.",
	Adapt:       tools.AdaptListID,
	OnFail:      withTodos,
}, func(ctx context.Context, env *tools.Env, in clearTodoIn) (out todoOut, err error) {
	list, id, err := todos.Find(ctx, env, in.ListID)
	if err != nil {
		return out, err
	}
	showTodos(ctx, list)
	list.Clear()
	return todoOut{Todos: list.All(), ListID: id}, nil
})
