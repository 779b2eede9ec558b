package skills

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
)

type skillLoadIn struct {
	Skill          string   `json:"skill" minLength:"1" nul:"no" doc:"Name of the skill."`
	Docs           []string `json:"docs,omitempty" nul:"no" doc:"Docs of the skill to send along, as skill_list_docs names them."`
	IncludeAllDocs bool     `json:"include_all_docs,omitempty" doc:"Send all docs along; wins over docs."`
}

var skillLoad = tools.Define(tools.Info{
	Name: "skill_load", Title: "Load skill", Budget: budget,
	Effect: tools.Sets, Lane: tools.LaneSkills, NoOutputSchema: true,
	Description: "Load the full instructions of a skill, and the docs that are asked for.",
	Adapt: func(env *tools.Env, l *tools.Listing) {
		adapt(env, l)
		if env.Skills == nil {
			return
		}
		if list := env.Skills.Repo.Catalogue(maxCatalogue, "skill_load"); list != "" {
			l.Description += "\n\n" + list
		}
	},
}, func(ctx context.Context, env *tools.Env, in skillLoadIn) (*loaded, error) {
	text, err := tools.SessionOf(ctx).Skills.Load(ctx, in.Skill, in.Docs, in.IncludeAllDocs, env.Budget(budget))
	return &loaded{in.Skill, text}, err
})
