package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/server/internal/servertest"
)

// routed are tools that all go through mcp-go's HandleMessage.
type routed struct{ dispatch.Tools }

func (routed) Handler(string) mcpserver.ToolHandlerFunc { return nil }

// mirror answers with everything that a handler is told of its call.
func mirror(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	r.Params.RawArguments = nil // the one thing that mcp-go adds; no tool of a profile reads it
	seen, err := json.Marshal(map[string]any{
		"method": r.Method, "name": r.Params.Name, "arguments": r.Params.Arguments, "isMap": r.GetArguments() != nil,
		"meta": r.Params.Meta, "task": r.Params.Task, "responses": r.Params.InputResponses, "state": r.Params.RequestState,
		"protocol": mcpserver.RequestProtocolInfoFromContext(ctx), "version": mcpserver.RequestProtocolVersion(ctx),
		"session": mcpserver.ClientSessionFromContext(ctx).SessionID(), "notMeta": r.Params.Meta == nil,
	})
	if err != nil {
		return nil, err
	}
	return mcp.NewToolResultText(string(seen)), nil
}

// forms are the params of tools/call, right and wrong; MODERN stands for the _meta
// members of a modern request.
var forms = []string{
	`{"name":"mirror"}`, `{"name":"mirror","arguments":null}`, `{"name":"mirror","arguments":{}}`,
	`{"name":"mirror","arguments":{"a":[1,2.5,"x",null,true,{"b":9007199254740993}]}}`,
	`{"name":"mirror","arguments":[1]}`, `{"name":"mirror","arguments":"text"}`, `{"name":"mirror","arguments":5}`, `{"name":"mirror","arguments":1e400}`,
	`{"name":"mirror","arguments":{"a":1},"arguments":{"b":2}}`, `{"name":"mirror","arguments":{"a":1},"arguments":null}`,
	`{"Name":"mirror","ARGUMENTS":{"a":1}}`, `{"name":"noop","Name":"mirror"}`, `{"name":"\u006dirror","arguments":{"\u0061":"\ud800"}}`,
	`{"name":"mirror","_meta":null}`, `{"name":"mirror","_meta":{}}`, `{"name":"mirror","_meta":5}`, `{"name":"mirror","_meta":"x"}`, `{"name":"mirror","_meta":[]}`, `{"name":"mirror","_meta":true}`,
	`{"name":"mirror","_meta":{"progressToken":7}}`, `{"name":"mirror","_meta":{"progressToken":"p","own":{"a":1}}}`, `{"name":"mirror","_meta":{"progressToken":null}}`,
	`{"name":"mirror","_meta":{"n":1e400}}`, `{"name":"mirror","_meta":{"a":1},"_meta":{"b":2}}`, `{"name":"mirror","_META":{"progressToken":1}}`,
	`{"name":"mirror","_meta":{"io.modelcontextprotocol/protocolVersion":"2025-06-18"}}`, `{"name":"mirror","_meta":{"io.modelcontextprotocol/protocolVersion":7}}`,
	`{"name":"mirror","task":{}}`, `{"name":"mirror","task":{"ttl":5}}`, `{"name":"mirror","task":5}`, `{"name":"mirror","task":null}`,
	`{"name":"mirror","requestState":"s"}`, `{"name":"mirror","requestState":5}`, `{"name":"mirror","requestState":null}`,
	`{"name":"mirror","inputResponses":{"a":{"action":"accept"}}}`, `{"name":"mirror","inputResponses":{"a":5}}`, `{"name":"mirror","inputResponses":[]}`, `{"name":"mirror","inputResponses":null}`,
	`{"name":"mirror","unknown":{"a":1}}`, `{"name":"mirror","_meta":{MODERN}}`, `{"name":"mirror","arguments":{"a":"<&>"},"_meta":{MODERN,"progressToken":1}}`,
	`{"name":"mirror","_meta":{MODERN,"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/logLevel":"debug"}}`,
	`{"name":"mirror","_meta":{MODERN,"io.modelcontextprotocol/clientInfo":5,"io.modelcontextprotocol/logLevel":5}}`,
	`{"name":"mirror","_meta":{MODERN,"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`,
	`{"name":"mirror","_meta":{MODERN,"io.modelcontextprotocol/clientCapabilities":{"elicitation":5}}}`,
	`{"name":"mirror","_meta":{MODERN,"io.modelcontextprotocol/clientCapabilities":{"elicitation":5}},"requestState":5}`,
	`{"name":"mirror","_meta":{MODERN,"io.modelcontextprotocol/clientCapabilities":5}}`, `{"name":"mirror","_meta":{MODERN,"n":1e400}}`,
	`{"name":"mirror","_meta":{MODERN},"requestState":5}`, `{"name":"mirror","_meta":{MODERN},"arguments":1e400}`,
	`{"name":"panics"}`, `{"name":"fails"}`, `{"name":"nothing"}`, `{"name":"nothing","_meta":{MODERN}}`, `{"name":"ask"}`, `{"name":"ask","_meta":{MODERN}}`,
	`{"name":""}`, `{"name":null}`, `{"name":5}`, `{}`, `[]`, `"x"`, `5`, `null`, `true`,
	`{"name":"image","_meta":{MODERN}}`, `{"name":"image"}`,
}

// TestDirectCallsAreRoutedCalls: a tool that is called directly sees, and its client
// gets, what mcp-go would make of the same message, byte for byte.
func TestDirectCallsAreRoutedCalls(t *testing.T) {
	b := servertest.New()
	b.AddTool(mcp.NewTool("mirror"), mirror)
	b.AddTool(mcp.NewTool("nothing"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
	b.AddTool(mcp.NewTool("image"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultImage("text", "AAAA", "image/png"), nil
	})
	direct, viaRouter := b.Dispatcher(), b.Dispatcher()
	viaRouter.Tools = routed{viaRouter.Tools}
	modern := strings.TrimSuffix(strings.TrimPrefix(servertest.ModernMeta, `"_meta":{`), "}")
	mirrored := 0
	for _, form := range forms {
		message := []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":"i","method":"tools/call","params":%s}`, strings.ReplaceAll(form, "MODERN", modern)))
		got, want := answer(t, direct, message), answer(t, viaRouter, message)
		if got != want {
			t.Errorf("%s\ndirect: %s\nrouted: %s", form, got, want)
		}
		if strings.Contains(got, `\"isMap\"`) {
			mirrored++
		}
	}
	if mirrored < len(forms)/2 {
		t.Errorf("only %d of %d forms reached the tool", mirrored, len(forms))
	}
}

func answer(t *testing.T, d *dispatch.Dispatcher, message []byte) string {
	t.Helper()
	m, fault := jsonrpc.Read(message)
	if fault != nil {
		t.Fatalf("%s: %s", message, fault.Message)
	}
	r := dispatch.NewRequest(&m)
	result, fault := d.Handle(t.Context(), &r, dispatch.NewSession("s", nil))
	line, _ := r.Encode(result, fault)
	return string(line)
}
