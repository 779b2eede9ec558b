package perstack

import (
	"context"
	"errors"
	"fmt"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/media"
	"github.com/perstack-ai/perstack-base/tools/internal/textedit"
)

type readTextFileIn struct {
	Path string `json:"path" minLength:"1" nul:"no" doc:"File to read."`
	From *int64 `json:"from,omitempty" doc:"First line, counted from 0; negative counts from the end. Default 0."`
	To   *int64 `json:"to,omitempty" doc:"Line to stop before, counted from 0; negative counts from the end. Default: the number of lines."`
}

type readTextFileOut struct {
	Path       string `json:"path" doc:"The path as it was given."`
	Content    string `json:"content" doc:"The lines, joined by line feeds."`
	From       int64  `json:"from" doc:"First line."`
	To         int64  `json:"to" doc:"Line after the last."`
	Truncated  bool   `json:"truncated,omitempty" doc:"True when lines were left out; read on with from = to."`
	TotalLines int64  `json:"totalLines,omitempty" doc:"Lines of the whole file, then."`
	Hint       string `json:"hint,omitempty" doc:"How to get the rest, then."`
}

var readTextFile = tools.Define(tools.Info{
	Name: "readTextFile", Title: "Read text file", Effect: tools.Reads, Budget: budget,
	Description: "Read a UTF-8 text file, or a range of its lines.",
}, func(_ context.Context, env *tools.Env, in readTextFileIn) (out readTextFileOut, err error) {
	file, err := env.Files.Open(in.Path)
	if err != nil {
		return out, err
	}
	defer file.Close()
	slice, err := textedit.ReadSlice(file, file.Size(), in.From, in.To, env.Budget(budget))
	if err != nil {
		return out, notText(err, in.Path)
	}
	out = readTextFileOut{Path: in.Path, Content: slice.Content, From: slice.From, To: slice.To}
	if slice.Cut {
		out.Truncated, out.TotalLines = true, slice.TotalLines
		out.Hint = fmt.Sprintf("Read on with from = %d.", slice.To)
		if slice.LongLine > 0 {
			out.Hint = fmt.Sprintf("Line %d has %d bytes; exec can show the rest of it. %s", slice.From, slice.LongLine, out.Hint)
		}
	}
	return out, nil
})

// notText words a file that is not text, and names the tool that takes it.
func notText(err error, path string) error {
	var not *textedit.NotTextError
	if !errors.As(err, &not) {
		return err
	}
	is, hint := media.DetectBytes(not.Head), ""
	switch {
	case is.IsImage():
		hint = "Use readImageFile."
	case is == media.PDF:
		hint = "Use readPdfFile."
	}
	return tools.Errorf(fault.NotText, hint, "File %s is not text (%s).", path, is)
}
