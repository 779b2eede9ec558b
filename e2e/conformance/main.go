// Command conformance is a perstack-base server with the fixtures that the official
// conformance suite wants to find: tools, prompts and resources with the names and
// answers that it prescribes. It serves the current directory over Streamable HTTP on
// a free port of loopback, until it is interrupted.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/server"
	"github.com/perstack-ai/perstack-base/tools"
)

func main() {
	process.Helpers() // returns at once unless this process was started to help another
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	web := &server.HTTP{}
	s, err := server.New(server.Config{
		HTTP: web, Tools: []string{fixtures.Name}, Profiles: []*tools.Profile{fixtures}, Extension: extension,
		TaskAfter: -1, // the suite waits for no task to begin
	})
	if err != nil {
		return err
	}
	defer s.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "perstack-base: listening on http://%s%s\n", ln.Addr(), web.Path())
	return s.ServeListener(ctx, ln)
}

// extension has what no profile can: tools that ask the client, prompts, resources.
var extension = &server.Extension{
	Options: []mcpserver.ServerOption{
		mcpserver.WithLogging(), mcpserver.WithElicitation(), mcpserver.WithResourceCapabilities(true, true),
	},
	Register: func(m *mcpserver.MCPServer) {
		m.EnableSampling()
		addTools(m)
		addInputTools(m)
		addTaskTools(m)
		addPrompts(m)
		addResources(m)
	},
	Intercept: intercept,
}

// fixtures has the one tool of the suite that is like any other.
var fixtures = &tools.Profile{
	Name: "conformance", Summary: "Fixtures of the official conformance suite.", Dialect: fixtureDialect{},
	Tools: []*tools.Tool{tools.Define(tools.Info{
		Name: "test_simple_text", Title: "Simple text", Description: "Answers with a text.", Effect: tools.Reads, NoOutputSchema: true,
	}, func(context.Context, *tools.Env, struct{}) (string, error) {
		return "This is a simple text response for testing.", nil
	})},
}

type fixtureDialect struct{}

func (fixtureDialect) OK(_ *tools.Call, out any) *mcp.CallToolResult { return tools.Text(out.(string)) }
func (fixtureDialect) Fail(_ *tools.Call, e *tools.Error) *mcp.CallToolResult {
	return tools.Text(e.Msg)
}

// intercept answers with the errors that no handler of mcp-go can give.
func intercept(ctx context.Context, r server.Request) (any, *mcp.JSONRPCErrorDetails, bool) {
	if r.Method != string(mcp.MethodToolsCall) || !mcp.IsModernProtocol(r.Version) {
		return nil, nil, false
	}
	var params struct {
		Name         string
		RequestState *string
		Meta         struct {
			Capabilities struct{ Sampling *struct{} } `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
	}
	if json.Unmarshal(r.Params, &params) != nil {
		return nil, nil, false
	}
	if err, broken := breaks(ctx, params.Name); broken {
		return nil, err, true
	}
	switch {
	case params.Name == "test_missing_capability" && params.Meta.Capabilities.Sampling == nil:
		need := map[string]any{"requiredCapabilities": map[string]any{"sampling": map[string]any{}}}
		return nil, &mcp.JSONRPCErrorDetails{Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: "this tool needs sampling", Data: need}, true
	case params.Name == "test_input_required_result_tampered_state" && params.RequestState != nil && !genuine(*params.RequestState):
		return nil, &mcp.JSONRPCErrorDetails{Code: mcp.INVALID_PARAMS, Message: "requestState was changed"}, true
	}
	return nil, nil, false
}
