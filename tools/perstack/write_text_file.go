package perstack

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
)

type writeTextFileIn struct {
	Path string `json:"path" minLength:"1" nul:"no" doc:"File to create or replace; missing directories are made."`
	Text string `json:"text" maxLength:"10000" doc:"The whole new content, at most {maxLength} characters; an empty text empties the file."`
}

type writeTextFileOut struct {
	Path string `json:"path" doc:"Absolute path of the file."`
	Text string `json:"text" doc:"The text that was written."`
}

var writeTextFile = tools.Define(tools.Info{
	Name: "writeTextFile", Title: "Write text file",
	Effect: tools.Replaces, Lane: tools.LaneFiles, View: tools.ViewDiff,
	Description: "Create a text file or replace its whole content. For a longer text write a first part and continue with editTextFile or exec.",
}, func(ctx context.Context, env *tools.Env, in writeTextFileIn) (writeTextFileOut, error) {
	at, err := env.Write(ctx, in.Path, []byte(in.Text))
	return writeTextFileOut{Path: at.Abs, Text: in.Text}, err
})
