package baseagent

import (
	"context"
	"fmt"

	"github.com/perstack-ai/perstack-base/tools"
)

type writeFileIn struct {
	FilePath string `json:"file_path" minLength:"1" nul:"no" doc:"File to create or replace; missing directories are made."`
	Content  string `json:"content" doc:"The whole new content."`
}

var writeFile = tools.Define(tools.Info{
	Name: "write_file", Title: "Write file",
	Effect: tools.Replaces, Lane: tools.LaneFiles, View: tools.ViewDiff, NoOutputSchema: true,
	Description: "Create a file or replace it whole. Use apply_patch for small changes. End text files with a newline.",
}, func(ctx context.Context, env *tools.Env, in writeFileIn) (string, error) {
	_, err := env.Write(ctx, in.FilePath, []byte(in.Content))
	return fmt.Sprintf("Wrote %d bytes to %s", len(in.Content), in.FilePath), err
})
