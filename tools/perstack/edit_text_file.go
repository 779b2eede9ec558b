package perstack

import (
	"context"
	"errors"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/textedit"
)

type editTextFileIn struct {
	Path    string `json:"path" minLength:"1" nul:"no" doc:"File to edit."`
	OldText string `json:"oldText" maxLength:"2000" doc:"Text to replace, exactly as it stands in the file, at most {maxLength} characters. An empty text means the start of the file."`
	NewText string `json:"newText" maxLength:"2000" doc:"Text to put there, at most {maxLength} characters; an empty text deletes."`
}

type editTextFileOut struct {
	Path    string `json:"path" doc:"Absolute path of the file."`
	OldText string `json:"oldText" doc:"The text that was replaced."`
	NewText string `json:"newText" doc:"The text that stands there now."`
}

var editTextFile = tools.Define(tools.Info{
	Name: "editTextFile", Title: "Edit text file", Largest: sandbox.DefaultLimits.EditBytes,
	Effect: tools.Edits, Lane: tools.LaneFiles, View: tools.ViewDiff,
	Description: "Replace the first exact occurrence of a text in a file. Nothing is a pattern; CRLF and LF count as the same.",
}, func(ctx context.Context, env *tools.Env, in editTextFileIn) (editTextFileOut, error) {
	at, err := env.Edit(ctx, in.Path, func(old []byte) ([]byte, error) {
		return textedit.ReplaceFirst(old, in.OldText, in.NewText)
	})
	var none *textedit.NoMatchError
	if errors.As(err, &none) {
		err = tools.Errorf(fault.NoMatch, none.Hint(), "oldText does not occur in %s.", in.Path)
	}
	return editTextFileOut{Path: at.Abs, OldText: in.OldText, NewText: in.NewText}, notText(err, in.Path)
})
