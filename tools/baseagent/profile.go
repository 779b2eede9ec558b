// Package baseagent implements BaseAgent's API: eight tools that answer
// with text for a model to read. Start with [Profile]; each tool is in the file of
// its name.
package baseagent

import (
	"errors"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
	"github.com/perstack-ai/perstack-base/tools/internal/patch"
	"github.com/perstack-ai/perstack-base/tools/internal/plan"
	"github.com/perstack-ai/perstack-base/tools/internal/search"
)

// Profile is BaseAgent's set of tools.
var Profile = &tools.Profile{
	Name:         "baseagent",
	Summary:      "BaseAgent's tools: shell, read, write, patch, search, list, images, and a plan.",
	Instructions: "Find code with grep_files and list_dir, read it with read_file, and change it with apply_patch.",
	Dialect:      dialect{},
	Tools: []*tools.Tool{
		applyPatch,
		grepFiles,
		listDir,
		readFile,
		shellCommand,
		updatePlan,
		viewImage,
		writeFile,
	},
}

// Numbers of this API that more than one tool needs.
const (
	budget         = 2500 * outcut.TokenBytes // bytes of text in an answer
	commandTimeout = 60 * time.Second
)

// An answer is text that may be long, and what to do when it was cut.
type answer struct {
	text   outcut.Text
	way    outcut.Way
	failed bool // a command ended with a status that is not 0
}

// cut is an answer that has been cut already, where it was too long.
type cut string

// page is an answer that is read on with limit and offset.
func page(text, narrower string) answer {
	return answer{text: outcut.Whole(text), way: outcut.Advice("use limit and offset, or a " + narrower)}
}

// A dialect answers with a block of text; that of a failure begins with Error.
type dialect struct{}

// askForLess is what to do about an answer that nothing better is known of.
var askForLess = outcut.Advice("ask for less at once")

func (dialect) OK(call *tools.Call, out any) *mcp.CallToolResult {
	switch out := out.(type) {
	case answer:
		result := tools.Text(strings.TrimRight(out.text.Cut(call.Env.Budget(budget), out.way), "\r\n"))
		result.IsError = out.failed
		return result
	case cut:
		return tools.Text(string(out))
	case picture:
		return out.result()
	}
	return tools.Text(outcut.Middle(out.(string), call.Env.Budget(budget), askForLess))
}

func (dialect) Fail(call *tools.Call, e *tools.Error) *mcp.CallToolResult {
	text := "Error: " + message(e)
	if e.Hint != "" {
		text += "\n" + e.Hint
	}
	text = strings.TrimRight(strings.ToValidUTF8(text, "\ufffd"), "\r\n")
	return tools.Text(outcut.Middle(text, call.Env.Budget(budget), askForLess))
}

// message is the sentence of an error where this API words it itself.
func message(e *tools.Error) string {
	var path *sandbox.PathError
	var full *plan.TooLargeError
	if missing, refused := tools.Unconfined(e.Err); refused {
		return "Commands are refused: " + missing + "."
	}
	switch {
	case errors.As(e.Err, &path) && errors.Is(path.Err, sandbox.ErrBadPath):
		return strings.Replace(e.Msg, "path", path.Path, 1)
	case errors.As(e.Err, &full):
		return "The plan is too large."
	case sentences(e.Err):
		return e.Err.Error()
	}
	return e.Msg
}

// sentences tells whether an error of an engine is worded for this API already.
func sentences(err error) bool {
	return is[*patch.SyntaxError](err) || is[*patch.PathError](err) || is[*patch.MatchError](err) ||
		is[*search.PatternError](err) || is[*search.GlobError](err) || is[*search.TypeError](err)
}

func is[T error](err error) bool {
	var kind T
	return errors.As(err, &kind)
}
