package echo

import (
	"context"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/skill"
)

type runSkillScriptIn struct {
	SkillName string `json:"skill_name" nul:"no" doc:"Name of the activated skill."`
	Script    string `json:"script" nul:"no" doc:"Script to run, relative to the skill directory."`
	Args      string `json:"args" default:"" nul:"no" doc:"Arguments, split into words with quotes and backslashes; no shell sees them."`
}

var runSkillScript = tools.Define(tools.Info{
	Name: "run_skill_script", Title: "Run script of a skill", Effect: tools.Runs, View: tools.ViewTerminal, Budget: budget, Timeout: scriptTimeout,
	Description: "Run a script of an activated skill with the interpreter for its kind. It runs in the skill directory.",
}, func(ctx context.Context, env *tools.Env, in runSkillScriptIn) (string, error) {
	timeout := env.CommandTimeout(scriptTimeout)
	result, err := tools.SessionOf(ctx).Skills.RunScript(ctx, skill.Script{
		Skill: in.SkillName, Script: in.Script, Args: in.Args,
		Timeout: timeout, Budget: env.Budget(budget), Start: env.Run,
		Longer: func(r process.Result) string { return env.Longer(r, timeout, scriptTimeout, "", 0) },
	})
	if err != nil {
		return "", err
	}
	if result.Failure != "" {
		failed := tools.Errorf(fault.Failed, "", "%s", result.Failure)
		failed.Data = result.Output
		return "", failed
	}
	return result.Output, nil
})
