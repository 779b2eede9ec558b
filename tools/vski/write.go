package vski

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/textedit"
)

type writeIn struct {
	Path      string `json:"path" minLength:"1" nul:"no" doc:"File to write; missing directories are made."`
	Data      string `json:"data" doc:"Text to write."`
	StartLine *int64 `json:"start_line,omitempty" min:"1" doc:"Line to insert before, or the first line to replace; left out, the whole file is written."`
	EndLine   *int64 `json:"end_line,omitempty" doc:"Last line to replace, not before start_line; left out, lines are inserted."`
}

type writeOut struct {
	Success       bool   `json:"success" doc:"True unless there is an error."`
	Error         string `json:"error,omitempty" doc:"What went wrong; absent on success."`
	Path          string `json:"path" doc:"The path as it was given."`
	BytesWritten  int    `json:"bytes_written" doc:"Bytes of data."`
	Mode          string `json:"mode" doc:"What was done: write, insert or replace."`
	LinesAffected int64  `json:"lines_affected" doc:"Lines in data."`
	InsertedAt    int64  `json:"inserted_at,omitempty" doc:"Line before which data was inserted."`
	LinesReplaced *int64 `json:"lines_replaced,omitempty" doc:"Number of lines that were replaced."`
	Range         string `json:"range,omitempty" doc:"The lines that were replaced, as in 7-8."`
	Message       string `json:"message" doc:"The same in a sentence."`
}

var write = tools.Define(tools.Info{
	Name: "write", Title: "Write file", Largest: sandbox.DefaultLimits.EditBytes,
	Effect: tools.Edits, Lane: tools.LaneFiles, View: tools.ViewDiff, Adapt: onlySuccess,
	Description: "Write a whole file, or insert lines (start_line), or replace lines (start_line and end_line). Lines count from 1; a start_line far beyond the end appends.",
}, func(ctx context.Context, env *tools.Env, in writeIn) (writeOut, error) {
	out := writeOut{Success: true, Path: in.Path, BytesWritten: len(in.Data)}
	edit, err := in.edit()
	if err != nil {
		return out, err
	}
	if edit == nil {
		_, err = env.Write(ctx, in.Path, []byte(in.Data))
		return out.wrote(in.Data), err
	}
	e, err := editLines(ctx, env.Files, in.Path, edit)
	if in.EndLine == nil {
		return out.inserted(e), err
	}
	return out.replaced(e), err
})

// A lineEdit makes a new text of an old one.
type lineEdit func(old []byte) (textedit.Edit, error)

// edit is what the arguments ask for, nil for the whole file.
func (in writeIn) edit() (lineEdit, error) {
	switch {
	case in.StartLine == nil && in.EndLine == nil:
		return nil, nil
	case in.StartLine == nil:
		return nil, tools.Errorf(fault.BadInput, "", "end_line requires start_line to be specified")
	case in.EndLine == nil:
		return func(old []byte) (textedit.Edit, error) { return textedit.InsertLines(old, in.Data, *in.StartLine) }, nil
	case *in.EndLine < *in.StartLine:
		return nil, tools.Errorf(fault.BadInput, "", "end_line must be >= start_line")
	}
	return func(old []byte) (textedit.Edit, error) {
		return textedit.ReplaceLines(old, in.Data, *in.StartLine, *in.EndLine)
	}, nil
}

// editLines edits a file, which is created when it does not exist.
func editLines(ctx context.Context, fsys *files.FS, path string, edit lineEdit) (e textedit.Edit, err error) {
	var change tools.Change
	err = fsys.Transact([]string{path}, func(tx *files.Tx) error {
		old, err := tx.ReadFile(path)
		missing := errors.Is(err, fs.ErrNotExist)
		if err != nil && !missing {
			return err
		}
		if e, err = edit(old); err != nil {
			return binary(err, path)
		}
		if change = (tools.Change{From: path, To: path, Old: old, New: e.Data}); missing {
			change.From = ""
		}
		if !missing && bytes.Equal(old, e.Data) {
			return nil
		}
		return tx.Write(path, e.Data, nil)
	})
	if err == nil {
		tools.ShowChanges(ctx, change)
	}
	return e, err
}

func (out writeOut) wrote(data string) writeOut {
	out.Mode, out.Message = "write", "File written successfully"
	out.LinesAffected = int64(strings.Count(data, "\n"))
	if data != "" && !strings.HasSuffix(data, "\n") {
		out.LinesAffected++
	}
	return out
}

func (out writeOut) inserted(e textedit.Edit) writeOut {
	out.Mode, out.LinesAffected, out.InsertedAt = "insert", e.Lines, e.Start
	out.Message = fmt.Sprintf("Data inserted at line %d", e.Start)
	return out
}

func (out writeOut) replaced(e textedit.Edit) writeOut {
	out.Mode, out.LinesAffected, out.LinesReplaced = "replace", e.Lines, &e.Replaced
	out.Range = fmt.Sprintf("%d-%d", e.Start, e.End)
	out.Message = fmt.Sprintf("Replaced lines %s (%s) with %s", out.Range, count(e.Replaced, "line"), count(e.Lines, "new line"))
	return out
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
