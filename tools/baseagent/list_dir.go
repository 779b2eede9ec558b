package baseagent

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/search"
)

type listDirIn struct {
	DirPath string `json:"dir_path" minLength:"1" nul:"no" doc:"Directory to show."`
	Offset  int    `json:"offset" type:"number" default:"1" min:"1" doc:"First entry, counted from 1."`
	Limit   int    `json:"limit" type:"number" default:"50" min:"1" max:"50000" doc:"Entries to return."`
	Depth   int    `json:"depth" type:"number" default:"2" min:"1" max:"100" doc:"Levels to show; 1: direct children only."`
}

var listDir = tools.Define(tools.Info{
	Name: "list_dir", Title: "List directory", Effect: tools.Reads, NoOutputSchema: true, Budget: budget,
	Description: "Show a directory as a tree. Marks: / directory, @ symbolic link, ? FIFO, socket or device. Hidden and ignored entries are shown; .git is not entered.",
}, func(ctx context.Context, env *tools.Env, in listDirIn) (answer, error) {
	rel, err := env.Files.Clean(in.DirPath)
	if err != nil {
		return answer{}, err
	}
	d, err := env.Files.OpenDir(in.DirPath)
	if err != nil {
		return answer{}, directory(env, in.DirPath, err)
	}
	defer d.Close()
	text, err := search.List(ctx, dir{d}, search.ListQuery{
		Path: rel, Given: in.DirPath, Offset: in.Offset, Limit: in.Limit, Depth: in.Depth,
	})
	return page(text, "smaller depth"), err
})

// directory words an error about a path that should lead to a directory.
func directory(env *tools.Env, path string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	hint := ""
	if near := env.Files.Near(path); len(near) > 0 {
		hint = "Did you mean " + strings.Join(near, " or ") + "?"
	}
	return tools.Errorf(fault.NotFound, hint, "Directory %s does not exist.", path)
}
