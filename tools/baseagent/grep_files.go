package baseagent

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/search"
)

type grepFilesIn struct {
	Pattern         string      `json:"pattern" minLength:"1" doc:"Regular expression."`
	Include         string      `json:"include,omitempty" minLength:"1" doc:"Glob, as in *.py, *.{ts,tsx}, src/**/*.go; a leading ! excludes."`
	Path            string      `json:"path" default:"." minLength:"1" nul:"no" doc:"Directory or file to search."`
	Limit           int         `json:"limit" type:"number" default:"100" min:"1" max:"10000" doc:"Entries to return: files, or in content mode matching lines (multiline: matches)."`
	Offset          int         `json:"offset" type:"number" default:"1" min:"1" doc:"First entry, counted from 1."`
	OutputMode      search.Mode `json:"output_mode" default:"files" enum:"files,content,count" doc:"What to show."`
	Context         int         `json:"context" type:"number" default:"0" min:"0" max:"100" doc:"In content mode: lines before and after a match."`
	CaseInsensitive bool        `json:"case_insensitive" default:"false" doc:"Ignore letter case."`
	Multiline       bool        `json:"multiline" default:"false" doc:"Match across lines: . matches a line feed, ^ and $ match at every line."`
	Type            string      `json:"type,omitempty" minLength:"1" doc:"Kind of file, as in go, py, ts, md."`
	NoIgnore        bool        `json:"no_ignore" default:"false" doc:"Search what .gitignore leaves out."`
	Hidden          bool        `json:"hidden" default:"false" doc:"Search names that begin with a dot."`
}

var grepFiles = tools.Define(tools.Info{
	Name: "grep_files", Title: "Search files", Effect: tools.Reads, NoOutputSchema: true, Budget: budget, Timeout: search.DefaultTimeout,
	Description: "Find files by content, newest first; with output_mode content or count show or count the matching lines. The pattern is RE2 as in Go, matched line by line: no look-around, no back-references.",
}, func(ctx context.Context, env *tools.Env, in grepFilesIn) (answer, error) {
	rel, err := env.Files.Clean(in.Path)
	if err != nil {
		return answer{}, err
	}
	text, err := search.Grep(ctx, searchTree{env.Files, rel, in.Path}, search.Query{
		Pattern: in.Pattern, Path: rel, Include: in.Include, Type: in.Type, Mode: in.OutputMode,
		Limit: in.Limit, Offset: in.Offset, Context: in.Context,
		CaseInsensitive: in.CaseInsensitive, Multiline: in.Multiline, NoIgnore: in.NoIgnore, Hidden: in.Hidden,
	})
	return page(text, "narrower pattern"), err
})
