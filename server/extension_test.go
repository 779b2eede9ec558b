package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/servertest"
)

// embedded is an extension with one of everything.
var embedded = &Extension{
	Options: []mcpserver.ServerOption{mcpserver.WithLogging()},
	Register: func(m *mcpserver.MCPServer) {
		m.AddTool(mcp.NewTool("own_tool"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(fmt.Sprintf("mine %v %v", mcpserver.ServerFromContext(ctx) == m, r.GetArguments()["a"])), nil
		})
		m.AddPrompt(mcp.NewPrompt("own_prompt"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return mcp.NewGetPromptResult("mine", nil), nil
		})
		m.AddResource(mcp.NewResource("own://resource", "own_resource"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: "own://resource", Text: "my text"}}, nil
		})
	},
	Intercept: func(_ context.Context, r Request) (any, *mcp.JSONRPCErrorDetails, bool) {
		switch r.Method {
		case "own/method":
			return map[string]string{"params": string(r.Params)}, nil, true
		case "own/failure":
			return nil, &mcp.JSONRPCErrorDetails{Code: -32099, Message: "mine", Data: 1}, true
		}
		return nil, nil, false
	},
}

// TestExtension: what an embedding program adds is served beside the server's own;
// without the extension none of it is.
func TestExtension(t *testing.T) {
	dir := workspace(t)
	put(t, dir, map[string]string{"skills/s/SKILL.md": skillText("s")})
	request := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":%s}`, method, params)
	}
	cases := []struct {
		message string
		want    []string // with the extension
		own     bool     // the first of want is not there without it
	}{
		{request("own/method", `{"a":1}`), []string{`"result":{"params":"{\"a\":1}"}`}, true},
		{request("own/failure", `{}`), []string{`"error":{"code":-32099,"message":"mine","data":1}`}, true},
		{request("logging/setLevel", `{"level":"debug"}`), []string{`"result":{}`}, true},
		{request("tools/call", `{"name":"own_tool","arguments":{"a":7}}`), []string{"mine true 7"}, true},
		{request("tools/list", `{}`), []string{`"own_tool"`, `"readTextFile"`, `"skill_load"`}, true},
		{request("prompts/list", `{}`), []string{`"own_prompt"`, `"name":"s"`}, true},
		{request("resources/list", `{}`), []string{`"own://resource"`, `"skill://s/SKILL.md"`}, true},
		{request("resources/read", `{"uri":"own://resource"}`), []string{`my text`}, true},
		{request("resources/read", `{"uri":"skill://s/SKILL.md"}`), []string{`The skill s.`}, false},
		{request("resources/read", `{"uri":"skill://none"}`), []string{`There is no resource skill://none.`}, false},
		{request("tools/call", `{"name":"nope"}`), []string{`Unknown tool \"nope\".`}, false},
	}
	for _, extension := range []*Extension{embedded, nil} {
		l := dialServer(t, newServer(t, Config{Workspace: dir, Extension: extension}))
		l.Send(servertest.Greeting("1", "2025-11-25"))
		l.Next()
		for _, c := range cases {
			l.Send(c.message)
			got := l.Next()
			for i, want := range c.want {
				there := strings.Contains(got, want)
				if should := extension != nil || !c.own || i > 0; there != should {
					t.Errorf("%s: %q is in it: %v, want %v: %s", c.message, want, there, should, got)
				}
			}
		}
		l.End()
	}
}
