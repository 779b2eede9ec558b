package tools_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools"
)

type shoutIn struct {
	Text  string `json:"text" maxLength:"20" doc:"What to shout, at most {maxLength} characters."`
	Times int64  `json:"times" default:"1" min:"1" max:"3" doc:"How often."`
}

type shoutOut struct {
	Shouted string `json:"shouted" doc:"The text in capitals."`
}

// shout is a whole tool: arguments, result, what it says of itself, what it does.
var shout = tools.Define(tools.Info{
	Name: "shout", Title: "Shout", Effect: tools.Reads,
	Description: "Put a text into capitals.",
}, func(_ context.Context, _ *tools.Env, in shoutIn) (shoutOut, error) {
	if strings.Contains(in.Text, "secret") {
		return shoutOut{}, tools.Errorf(fault.Denied, "Shout something else.", "Secrets are not shouted.")
	}
	return shoutOut{strings.Repeat(strings.ToUpper(in.Text), int(in.Times))}, nil
})

// plain is the simplest dialect: a JSON object, or the error's sentence.
type plain struct{}

func (plain) OK(_ *tools.Call, out any) *mcp.CallToolResult { return tools.Object(out) }

func (plain) Fail(_ *tools.Call, e *tools.Error) *mcp.CallToolResult {
	return tools.Text(fmt.Sprintf("%s: %s %s", e.Code, e.Msg, e.Hint))
}

func ExampleDefine() {
	profile := &tools.Profile{Name: "example", Summary: "How a tool is made.", Dialect: plain{}, Tools: []*tools.Tool{shout}}
	env := &tools.Env{Log: slog.New(slog.DiscardHandler)}
	ready := shout.Bind(env, profile)
	fmt.Println(string(ready.Tool.RawInputSchema))
	for _, args := range []map[string]any{
		{"text": "hello", "times": 2.0},
		{"txt": "hello"},
		{"text": "hello", "times": 9.0},
		{"text": "my secret"},
	} {
		var req mcp.CallToolRequest
		req.Params.Arguments = args
		result, err := ready.Handler(context.Background(), req)
		fmt.Println(result.Content[0].(mcp.TextContent).Text, result.IsError, err)
	}
	// Output:
	// {"type":"object","properties":{"text":{"type":"string","description":"What to shout, at most 20 characters.","maxLength":20},"times":{"type":"integer","description":"How often.","default":1,"minimum":1,"maximum":3}},"required":["text"],"additionalProperties":false}
	// {"shouted":"HELLOHELLO"} false <nil>
	// bad_input: Unknown argument "txt". Did you mean "text"? Known arguments: text, times. true <nil>
	// bad_input: times must be at most 3.  true <nil>
	// denied: Secrets are not shouted. Shout something else. true <nil>
}
