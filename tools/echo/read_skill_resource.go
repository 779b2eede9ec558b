package echo

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/skill"
)

type readSkillResourceIn struct {
	SkillName string `json:"skill_name" nul:"no" doc:"Name of the activated skill."`
	Path      string `json:"path" nul:"no" doc:"File to read, relative to the skill directory."`
}

var readSkillResource = tools.Define(tools.Info{
	Name: "read_skill_resource", Title: "Read resource of a skill", Effect: tools.Reads, Budget: tools.Longest, Fixed: true,
	Description: "Read a file of an activated skill, such as a reference document.",
}, func(ctx context.Context, _ *tools.Env, in readSkillResourceIn) (*skill.Resource, error) {
	return tools.SessionOf(ctx).Skills.Resource(ctx, in.SkillName, in.Path)
})
