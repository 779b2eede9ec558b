package echo

import (
	"context"
	"strings"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/skill"
)

type activateSkillIn struct {
	Name        string `json:"name" nul:"no" doc:"The skill name to activate."`
	Arguments   string `json:"arguments,omitempty" nul:"no" doc:"Arguments for the skill, separated by blanks."`
	ContextPath string `json:"context_path,omitempty" nul:"no" doc:"The file that is being worked on, for skills that activate for certain paths."`
}

var activateSkill = tools.Define(tools.Info{
	Name: "activate_skill", Title: "Activate skill", Budget: tools.Longest, Fixed: true,
	Effect: tools.Sets, Lane: tools.LaneSkills,
	Description: "Activate a skill: its full instructions and the list of its resources come back.",
	Adapt: func(env *tools.Env, l *tools.Listing) {
		field := l.Input.Field("name")
		var names []string
		if env.Skills != nil {
			names = env.Skills.Names()
		}
		if len(names) == 0 {
			field.Doc += " (no skills available)"
			return
		}
		if len(names) <= skill.MaxListedNames {
			field.Known = names
			field.Doc += " One of: " + strings.Join(names, ", ")
		}
		l.Description += "\n\n" + env.Skills.Repo.Catalogue(maxCatalogue, "activate_skill")
	},
}, func(ctx context.Context, _ *tools.Env, in activateSkillIn) (string, error) {
	return tools.SessionOf(ctx).Skills.Activate(ctx, in.Name, in.Arguments, in.ContextPath)
})
