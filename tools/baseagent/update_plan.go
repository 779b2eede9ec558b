package baseagent

import (
	"context"
	"errors"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/plan"
)

type updatePlanIn struct {
	Steps       []step `json:"steps" also:"plan" doc:"The whole plan, in order."`
	Explanation string `json:"explanation,omitempty" doc:"Why the plan changed."`
	ListID      string `json:"listId,omitempty" doc:"Which plan; without it a client that has no session starts a new one."`
}

type step struct {
	Description string      `json:"description" also:"step" doc:"What is to be done, in a few words."`
	Status      plan.Status `json:"status" enum:"pending,in_progress,completed" doc:"How far it is."`
}

// steps is the plan of a session.
var steps = tools.NewState(func() *plan.Plan { return &plan.Plan{} }).Lists("Plan", "update_plan", "plan_")

var updatePlan = tools.Define(tools.Info{
	Name: "update_plan", Title: "Update plan", Budget: budget,
	Effect: tools.Sets, Lane: tools.LaneList, View: tools.ViewPlan, NoOutputSchema: true,
	Description: "Keep a visible plan for work of several steps. Send the whole plan each time: short steps, one in progress, tick as you go.",
	Adapt:       tools.AdaptListID,
}, func(ctx context.Context, env *tools.Env, in updatePlanIn) (string, error) {
	list := make([]plan.Step, len(in.Steps))
	for i, s := range in.Steps {
		list[i] = plan.Step(s)
	}
	kept, id, err := steps.Find(ctx, env, in.ListID)
	if err != nil {
		return "", err
	}
	tools.ShowPlan(ctx, func() []tools.PlanStep { return asShown(kept.Steps()) })
	if err := kept.Replace(list); err != nil {
		return "", blank(err)
	}
	text := "Plan cleared."
	if len(list) > 0 {
		text = "Plan updated:\n" + plan.Render(list)
	}
	if strings.TrimSpace(in.Explanation) != "" {
		text += "\n\nReason: " + plan.OneLine(in.Explanation)
	}
	if id != "" {
		text += "\nlistId: " + id
	}
	return text, nil
})

// asShown is a plan for its view.
func asShown(list []plan.Step) []tools.PlanStep {
	shown := make([]tools.PlanStep, len(list))
	for i, s := range list {
		shown[i] = tools.PlanStep{Text: s.Description, Status: string(s.Status)}
	}
	return shown
}

// blank names the place of a step without a description.
func blank(err error) error {
	var none *plan.BlankError
	if errors.As(err, &none) {
		return tools.Errorf(fault.BadInput, "", "steps[%d].description must not be blank.", none.Index)
	}
	return err
}
