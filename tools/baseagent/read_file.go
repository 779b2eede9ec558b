package baseagent

import (
	"context"
	"errors"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/media"
	"github.com/perstack-ai/perstack-base/tools/internal/textedit"
)

type readFileIn struct {
	FilePath string `json:"file_path" minLength:"1" nul:"no" doc:"File to read."`
	Offset   int64  `json:"offset" type:"number" default:"1" min:"1" doc:"First line, counted from 1."`
	Limit    int64  `json:"limit" type:"number" default:"2000" min:"1" doc:"Lines to return."`
}

var readFile = tools.Define(tools.Info{
	Name: "read_file", Title: "Read file", Effect: tools.Reads, NoOutputSchema: true, Budget: budget,
	Description: "Read a text file with line numbers, a window at a time. Search with grep_files first to know where to read. The prefix `L{n}: ` is not part of the file.",
}, func(_ context.Context, env *tools.Env, in readFileIn) (cut, error) {
	file, err := env.Files.Open(in.FilePath)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := textedit.ReadNumbered(file, file.Size(), in.Offset, in.Limit, env.Budget(budget))
	return cut(text), unreadable(err, in.FilePath)
})

// unreadable words why a file is not shown.
func unreadable(err error, path string) error {
	var past *textedit.PastEndError
	var not *textedit.NotTextError
	switch {
	case errors.As(err, &past):
		return tools.Errorf(fault.BadInput, "", "offset %d is past the end of %s (%d lines).", past.Offset, path, past.Lines)
	case errors.As(err, &not):
		is, hint := media.DetectBytes(not.Head), "Look at it with shell_command."
		if is.IsImage() || is == media.BMP {
			hint = "Use view_image."
		}
		return tools.Errorf(fault.NotText, hint, "File %s is not text (%s).", path, is)
	}
	return err
}
