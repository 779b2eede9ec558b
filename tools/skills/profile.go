// Package skills implements the API of trpc-agent-go's four skill tools: load a
// skill, choose among its docs, run commands in its run workspace. Start with
// [Profile]; each tool is in the file of its name, the engine behind all of them
// in tools/internal/skill.
package skills

import (
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/skill"
)

// Profile is the skill tools of trpc-agent-go.
var Profile = &tools.Profile{
	Name:    "skills",
	Summary: "Agent Skills as in trpc-agent-go: load, pick docs, run in a private workspace.",
	Instructions: "Load a skill with skill_load before you follow it; choose its docs with skill_select_docs as needed; " +
		"then run its commands with skill_run: results go to $OUTPUT_DIR (out/), intermediate files to $WORK_DIR (work/); " +
		"inputs are in $WORK_DIR/inputs.",
	Dialect: dialect{},
	Tools:   []*tools.Tool{skillListDocs, skillLoad, skillRun, skillSelectDocs},
}

// Numbers of this API that more than one tool needs.
const (
	budget         = 131072           // bytes of text in a result
	commandTimeout = 55 * time.Second // MCP clients give up after 60
	longestRun     = time.Hour        // what skill_run's timeout takes
	maxCatalogue   = 8 << 10          // bytes of the list of skills in a description
)

// adapt lists the names of the known skills, without enforcing them: another
// name is refused by the tool itself.
func adapt(env *tools.Env, l *tools.Listing) {
	if env.Skills == nil {
		return
	}
	if names := env.Skills.Names(); len(names) > 0 && len(names) <= skill.MaxListedNames {
		l.Input.Field("skill").Known = names
	}
}

// loaded is a skill's text behind a line that says which one it is.
type loaded struct{ name, text string }

// A dialect answers with compact JSON, skill_load with text. A failure is an
// object with error and code.
type dialect struct{}

func (dialect) OK(_ *tools.Call, out any) *mcp.CallToolResult {
	switch out := out.(type) {
	case *loaded:
		return withText(tools.Text("loaded: "+out.name), out.text)
	case docsOut:
		r := tools.Object(out)
		r.Content = tools.Text(string(tools.JSON(out.Docs))).Content
		return r
	case skill.Selected:
		return withText(tools.Object(out), out.Text())
	}
	return tools.Object(out)
}

func withText(r *mcp.CallToolResult, text string) *mcp.CallToolResult {
	if text != "" {
		r.Content = append(r.Content, tools.Text(text).Content...)
	}
	return r
}

func (dialect) Fail(_ *tools.Call, e *tools.Error) *mcp.CallToolResult {
	return tools.Text(string(tools.JSON(struct {
		Error string     `json:"error"`
		Code  fault.Code `json:"code"`
		Hint  string     `json:"hint,omitempty"`
	}{message(e), e.Code, e.Hint})))
}

// message puts what is missing in the words of this API.
func message(e *tools.Error) string {
	var arg *tools.ArgError
	if errors.As(e.Err, &arg) && (arg.Problem == tools.ArgMissing || arg.Problem == tools.ArgEmpty) {
		return arg.Names[0] + " is required"
	}
	return skill.Message(e.Err, e.Msg)
}
