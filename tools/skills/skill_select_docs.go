package skills

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/skill"
)

type skillSelectDocsIn struct {
	Skill          string   `json:"skill" minLength:"1" nul:"no" doc:"Name of the skill."`
	Docs           []string `json:"docs,omitempty" nul:"no" doc:"Docs of the skill, as skill_list_docs names them."`
	IncludeAllDocs bool     `json:"include_all_docs,omitempty" doc:"Select all docs; wins over docs."`
	Mode           string   `json:"mode" default:"replace" doc:"add, replace or clear."`
}

var skillSelectDocs = tools.Define(tools.Info{
	Name: "skill_select_docs", Title: "Select docs of a skill", Budget: budget,
	Effect: tools.Sets, Lane: tools.LaneSkills,
	Description: "Choose which docs of a skill are sent with it: add to the selection, replace it, or clear it. Docs that became selected are sent at once.",
	Adapt: func(env *tools.Env, l *tools.Listing) {
		adapt(env, l)
		l.Input.Field("mode").Known = skill.SelectModes
	},
}, func(ctx context.Context, env *tools.Env, in skillSelectDocsIn) (skill.Selected, error) {
	return tools.SessionOf(ctx).Skills.Select(ctx, in.Skill, in.Docs, in.IncludeAllDocs, in.Mode, env.Budget(budget))
})
