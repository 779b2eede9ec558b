package vski

import (
	"context"
	"fmt"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/textedit"
)

type readIn struct {
	Path        string `json:"path" minLength:"1" nul:"no" doc:"File to read."`
	Offset      int64  `json:"offset" default:"1" doc:"First line, counted from 1; 0 counts as 1, -n means the last n lines."`
	Limit       *int64 `json:"limit,omitempty" min:"0" doc:"Number of lines to read; all when it is left out."`
	LineNumbers bool   `json:"line_numbers" default:"false" doc:"Put the line number before each line."`
}

type readOut struct {
	Success    bool   `json:"success" doc:"True unless there is an error."`
	Error      string `json:"error,omitempty" doc:"What went wrong; absent on success."`
	Content    string `json:"content" doc:"The lines as they are in the file, with their ends."`
	Path       string `json:"path" doc:"The path as it was given."`
	TotalLines int64  `json:"total_lines" doc:"Number of lines in the file."`
	LinesRead  int64  `json:"lines_read" doc:"Number of lines in content."`
	Offset     int64  `json:"offset" doc:"First line of content, counted from 1."`
	Limit      *int64 `json:"limit" doc:"The limit as it was given, or null."`
	Truncated  bool   `json:"truncated,omitempty" doc:"True when lines were left out."`
	NextOffset int64  `json:"next_offset,omitempty" doc:"Where to read on when lines were left out."`
	Message    string `json:"message,omitempty" doc:"What else there is to know."`
}

var read = tools.Define(tools.Info{
	Name: "read", Title: "Read file", Effect: tools.Reads, Adapt: onlySuccess, Budget: budget,
	Description: "Read a text file, or a window of its lines, cheaply also from very large files.",
}, func(_ context.Context, env *tools.Env, in readIn) (out readOut, err error) {
	file, err := env.Files.Open(in.Path)
	if err != nil {
		return out, err
	}
	defer file.Close()
	limit := int64(textedit.All)
	if in.Limit != nil {
		limit = *in.Limit
	}
	w, err := textedit.ReadWindow(file, file.Size(), in.Offset, limit, in.LineNumbers, env.Budget(budget))
	out = readOut{
		Success: true, Content: w.Content, Path: in.Path, TotalLines: w.TotalLines, LinesRead: w.LinesRead,
		Offset: w.Offset, Limit: in.Limit, Truncated: w.Truncated, NextOffset: w.NextOffset,
	}
	if w.LongLine > 0 {
		out.Message = fmt.Sprintf("Line %d has %d bytes; exec can show the rest of it.", w.Offset, w.LongLine)
	}
	return out, binary(err, in.Path)
})
