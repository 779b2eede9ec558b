package skills

import (
	"context"
	"fmt"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/skill"
)

type skillRunIn struct {
	Skill             string            `json:"skill" minLength:"1" nul:"no" doc:"Name of the skill; it need not be loaded."`
	Command           string            `json:"command" nul:"no" doc:"Command line for bash."`
	Cwd               string            `json:"cwd,omitempty" nul:"no" doc:"Directory to run in: relative to the skill (the default), or below $WORK_DIR, $OUTPUT_DIR, $PROJECT_DIR (the workspace)."`
	Env               map[string]string `json:"env,omitempty" nul:"no" doc:"Variables to add."`
	OutputFiles       []string          `json:"output_files,omitempty" nul:"no" doc:"Patterns of files to return, as in out/**/*.md."`
	Inputs            []skill.Input     `json:"inputs,omitempty" doc:"Files and directories to put into the run workspace first, at most 100."`
	Outputs           *skill.Outputs    `json:"outputs,omitempty" doc:"Files to list, return or save afterwards, with limits."`
	Timeout           *int64            `json:"timeout,omitempty" min:"0" max:"3600" doc:"Seconds after which it is ended; 0 is the default."`
	SaveAsArtifacts   bool              `json:"save_as_artifacts,omitempty" doc:"Keep what output_files finds as artifacts."`
	OmitInlineContent bool              `json:"omit_inline_content,omitempty" doc:"Report output_files without their contents."`
	ArtifactPrefix    string            `json:"artifact_prefix,omitempty" nul:"no" doc:"Put before the names of artifacts of output_files."`
}

var skillRun = tools.Define(tools.Info{
	Name: "skill_run", Title: "Run command of a skill", Effect: tools.Runs, View: tools.ViewTerminal, Budget: budget,
	Description: "Run a command in a private copy of a skill. work/, out/ and inputs/ there belong to this session and are kept between calls; write results to out/ and name them in output_files. A command that fails is a normal result with its exit_code.",
	Adapt: func(env *tools.Env, l *tools.Listing) {
		adapt(env, l)
		timeout, field := env.CommandTimeout(commandTimeout), l.Input.Field("timeout")
		if timeout%time.Second == 0 && timeout <= longestRun {
			field.Default = timeout.Seconds()
		} else {
			field.Doc += fmt.Sprintf(" Default %g.", timeout.Seconds())
		}
	},
}, func(ctx context.Context, env *tools.Env, in skillRunIn) (out skill.RunResult, err error) {
	run := skill.Run{
		Skill: in.Skill, Command: in.Command, Cwd: in.Cwd, Env: in.Env, Inputs: in.Inputs, OutputFiles: in.OutputFiles,
		Outputs: in.Outputs, Save: in.SaveAsArtifacts, OmitContent: in.OmitInlineContent, Prefix: in.ArtifactPrefix,
		Timeout: env.CommandTimeout(commandTimeout), Budget: env.Budget(budget),
		Start: env.Run,
	}
	if in.Timeout != nil && *in.Timeout > 0 {
		run.Timeout = time.Duration(*in.Timeout) * time.Second
	}
	run.Longer = func(r process.Result) string {
		return env.Longer(r, run.Timeout, commandTimeout, "timeout", int64(longestRun.Seconds()))
	}
	result, err := tools.SessionOf(ctx).Skills.Run(ctx, run)
	if err != nil {
		return out, err
	}
	return *result, nil
})
