package baseagent

import (
	"context"
	"errors"
	"strings"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/plan"
)

type updatePlanIn struct {
	Steps       []step `json:"steps" also:"plan" doc:"The whole plan, in order; it replaces the last one."`
	Explanation string `json:"explanation,omitempty" doc:"Why the plan changed."`
}

type step struct {
	Description string      `json:"description" also:"step" doc:"What is to be done, in a few words."`
	Status      plan.Status `json:"status" enum:"pending,in_progress,completed" doc:"How far it is."`
}

// steps is the plan of a session.
var steps = tools.NewState(func() *plan.Plan { return &plan.Plan{} })

var updatePlan = tools.Define(tools.Info{
	Name: "update_plan", Title: "Update plan",
	Effect: tools.Sets, Lane: tools.LaneList, NoOutputSchema: true,
	Description: "Keep a visible plan for work of several steps. Send the whole plan each time: short steps, one in progress, tick as you go.",
}, func(ctx context.Context, _ *tools.Env, in updatePlanIn) (string, error) {
	list := make([]plan.Step, len(in.Steps))
	for i, s := range in.Steps {
		list[i] = plan.Step(s)
	}
	if err := steps.Of(ctx).Replace(list); err != nil {
		return "", blank(err)
	}
	text := "Plan cleared."
	if len(list) > 0 {
		text = "Plan updated:\n" + plan.Render(list)
	}
	if strings.TrimSpace(in.Explanation) != "" {
		text += "\n\nReason: " + plan.OneLine(in.Explanation)
	}
	return text, nil
})

// blank names the place of a step without a description.
func blank(err error) error {
	var none *plan.BlankError
	if errors.As(err, &none) {
		return tools.Errorf(tools.BadInput, "", "steps[%d].description must not be blank.", none.Index)
	}
	return err
}
