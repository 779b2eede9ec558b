// Package vski implements the API of the VSKI Agent CLI: read, write and exec. Start
// with [Profile]; each tool is in the file of its name, and rc.go tells how exec
// reads a shell's rc file.
package vski

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/textedit"
)

// Profile is the set of tools of the VSKI Agent CLI.
var Profile = &tools.Profile{
	Name:    "vski",
	Summary: "The VSKI Agent CLI's tools: read, write, exec.",
	Instructions: "read and write work on windows of lines, counted from 1; exec runs a shell command line. " +
		"Every result has success; error says what went wrong.",
	Dialect: dialect{},
	Tools:   []*tools.Tool{exec, read, write},
}

// budget is the bytes of text in a result.
const budget = 131072

// onlySuccess lists success as the one key that every result has.
func onlySuccess(_ *tools.Env, l *tools.Listing) {
	for _, f := range l.Output.Fields {
		f.Optional = f.Name != "success"
	}
}

// A failure is what read and write answer when they fail.
type failure struct {
	Success bool   `json:"success"`
	Error   string `json:"error"`
	Path    string `json:"path"`
}

// A dialect answers with one JSON object, as text and structured, success or not.
type dialect struct{}

func (dialect) OK(_ *tools.Call, out any) *mcp.CallToolResult { return tools.Object(out) }

func (dialect) Fail(call *tools.Call, e *tools.Error) *mcp.CallToolResult {
	switch {
	case call.Tool != exec:
		return tools.Object(failure{Error: message(e), Path: call.Arg("path")})
	case e.Data != nil:
		return tools.Object(e.Data)
	}
	return tools.Object(notStarted{Error: execMessage(e), Command: call.Arg("command"), ExitCode: -1})
}

// message is the sentence of an error in this API.
func message(e *tools.Error) string {
	var arg *tools.ArgError
	var path *sandbox.PathError
	var large *sandbox.TooLargeError
	switch {
	case errors.As(e.Err, &arg):
		return argMessage(arg)
	case errors.As(e.Err, &large):
		return "File is too large to edit in place: " + large.Path
	case errors.As(e.Err, &path):
		return pathMessage(path)
	}
	return strings.TrimSuffix(e.Msg, ".")
}

func argMessage(e *tools.ArgError) string {
	switch e.Problem {
	case tools.ArgBelow:
		return fmt.Sprintf("%s must be >= %d", e.Names[0], e.Limit)
	case tools.ArgAbove:
		return fmt.Sprintf("%s must be <= %d", e.Names[0], e.Limit)
	case tools.ArgUnknown:
		return e.Error() + " " + e.Hint()
	}
	return strings.TrimSuffix(e.Error(), ".")
}

// pathSentences say what is wrong with a path. The first match counts.
var pathSentences = []struct {
	err  error
	text string
}{
	{sandbox.ErrEscapes, "Path is outside the workspace: "},
	{sandbox.ErrReserved, "Access to the perstack directory is denied: "},
	{sandbox.ErrIsDirectory, "Is a directory: "},
	{sandbox.ErrNotRegular, "Not a regular file: "},
	{sandbox.ErrNotReadable, "Permission denied: "},
	{sandbox.ErrNotWritable, "Permission denied: "},
	{fs.ErrNotExist, "File not found: "},
}

func pathMessage(e *sandbox.PathError) string {
	switch {
	case errors.Is(e.Err, sandbox.ErrParentIsFile):
		return "Not a directory: " + e.Parent
	case errors.Is(e.Err, sandbox.ErrBadPath):
		return "path " + e.Detail
	}
	for _, s := range pathSentences {
		if errors.Is(e.Err, s.err) {
			return s.text + e.Path
		}
	}
	return e.Error()
}

// binary names the file that is not text.
func binary(err error, path string) error {
	var not *textedit.NotTextError
	if errors.As(err, &not) {
		return tools.Errorf(fault.NotText, "", "Binary file: %s", path)
	}
	return err
}
