package skills

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
)

type skillListDocsIn struct {
	Skill string `json:"skill" minLength:"1" nul:"no" doc:"Name of the skill."`
}

type docsOut struct {
	Docs []string `json:"docs" doc:"Paths of its docs, in byte order."`
}

var skillListDocs = tools.Define(tools.Info{
	Name: "skill_list_docs", Title: "List docs of a skill", Effect: tools.Reads, Budget: tools.Longest, Fixed: true,
	Description: "List the docs of a skill: its text files besides SKILL.md.",
	Adapt:       adapt,
}, func(ctx context.Context, _ *tools.Env, in skillListDocsIn) (docsOut, error) {
	docs, err := tools.SessionOf(ctx).Skills.Docs(ctx, in.Skill)
	return docsOut{docs}, err
})
