package perstack

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
)

type clearTodoIn struct{}

var clearTodo = tools.Define(tools.Info{
	Name: "clearTodo", Title: "Clear todo list",
	Effect: tools.Clears, Lane: tools.LaneList,
	Description: "Drop the whole todo list and start over; ids count from 0 again.",
	OnFail:      withTodos,
}, func(ctx context.Context, _ *tools.Env, _ clearTodoIn) (todoOut, error) {
	list := todos.Of(ctx)
	list.Clear()
	return todoOut{Todos: list.All()}, nil
})
