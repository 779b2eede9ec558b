// Package echo implements the API of Echo Agent's three skill tools: activate a
// skill, read its resources, run its scripts. Start with [Profile]; each tool is
// in the file of its name, the engine behind all of them in tools/internal/skill.
package echo

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/skill"
)

// Profile is the skill tools of Echo Agent.
var Profile = &tools.Profile{
	Name:         "echo",
	Summary:      "Agent Skills as in Echo Agent: activate, read resources, run scripts.",
	Instructions: "A skill's resources are read with read_skill_resource and its scripts are run with run_skill_script after activate_skill has activated it.",
	Dialect:      dialect{},
	Tools:        []*tools.Tool{activateSkill, readSkillResource, runSkillScript},
}

// Numbers of this API that more than one tool needs.
const (
	budget        = 131072 // bytes of text in a result
	scriptTimeout = 30 * time.Second
	maxCatalogue  = 8 << 10 // bytes of the list of skills in a description
)

// A dialect answers with plain text.
type dialect struct{}

func (dialect) OK(_ *tools.Call, out any) *mcp.CallToolResult {
	if r, ok := out.(*skill.Resource); ok {
		return resource(r)
	}
	return tools.Text(fmt.Sprint(out))
}

// resource shows a file; one that is not text comes as a blob.
func resource(r *skill.Resource) *mcp.CallToolResult {
	result := tools.Text(r.Text)
	if r.Blob != nil {
		result.Content = append(result.Content, mcp.NewEmbeddedResource(mcp.BlobResourceContents{
			URI: r.URI, MIMEType: r.MIME, Blob: base64.StdEncoding.EncodeToString(r.Blob),
		}))
	}
	return result
}

// Fail shows the sentence, and behind it what a script that failed has printed.
func (dialect) Fail(_ *tools.Call, e *tools.Error) *mcp.CallToolResult {
	result := tools.Text(message(e))
	if output, ok := e.Data.(string); ok {
		result.Content = append(result.Content, tools.Text(output).Content...)
	}
	return result
}

// message puts what is wrong with arguments in the words of this API.
func message(e *tools.Error) string {
	var arg *tools.ArgError
	if !errors.As(e.Err, &arg) {
		return skill.Message(e.Err, e.Msg)
	}
	name := strings.Join(arg.Names, ", ")
	switch arg.Problem {
	case tools.ArgMissing:
		return "Missing parameter: " + name
	case tools.ArgUnknown:
		text := "Unknown parameter: " + name
		if arg.Near != "" {
			text += fmt.Sprintf(". Did you mean '%s'?", arg.Near)
		}
		return text
	case tools.ArgNUL:
		return fmt.Sprintf("Invalid parameter '%s': expected no NUL", name)
	}
	want := strings.TrimPrefix(strings.TrimPrefix(arg.Want, "a "), "an ")
	return fmt.Sprintf("Invalid parameter '%s': expected %s", name, want)
}
