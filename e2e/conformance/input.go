package main

import (
	"context"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// askName is the question of most fixtures that need input.
var askName = mcp.ElicitationParams{Message: "What is your name?", RequestedSchema: map[string]any{
	"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}, "required": []string{"name"},
}}

// fixtureState is what the client has to bring back unchanged.
const fixtureState = "state-of-the-fixture"

func genuine(state string) bool { return state == fixtureState }

// needs is a tool that asks what build wants, until every answer is there.
func needs(build func(*mcpserver.InputRequestBuilder)) fixtureHandler {
	return func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		b := mcpserver.NewInputRequestBuilder("")
		build(b)
		want := b.ToolResult()
		for key := range want.InputRequests {
			if _, ok := r.Params.InputResponses[key]; !ok {
				return want, nil
			}
		}
		return fixtureText("thank you"), nil
	}
}

func addInputTools(m *mcpserver.MCPServer) {
	add := func(name string, h fixtureHandler) {
		m.AddTool(mcp.NewTool("test_input_required_result_"+name, mcp.WithDescription("A fixture.")), h)
	}
	add("elicitation", needs(func(b *mcpserver.InputRequestBuilder) { b.Elicit("user_name", askName) }))
	add("sampling", needs(func(b *mcpserver.InputRequestBuilder) {
		b.Sample("capital_question", sample("What is the capital of France?"))
	}))
	add("list_roots", needs(func(b *mcpserver.InputRequestBuilder) { b.Roots("client_roots") }))
	for _, name := range []string{"request_state", "tampered_state"} {
		add(name, needs(func(b *mcpserver.InputRequestBuilder) { b.RequestState(fixtureState).Elicit("confirm", askName) }))
	}
	add("multiple_inputs", needs(func(b *mcpserver.InputRequestBuilder) {
		b.RequestState(fixtureState).Elicit("user_name", askName).Sample("greeting", sample("Greet the user")).Roots("client_roots")
	}))
	add("multi_round", multiRound)
	add("capabilities", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		caps := r.Params.Meta.ClientCapabilities()
		return needs(func(b *mcpserver.InputRequestBuilder) {
			if caps != nil && caps.Elicitation != nil {
				b.Elicit("user_name", askName)
			}
			if caps != nil && caps.Sampling != nil {
				b.Sample("greeting", sample("Greet the user"))
			}
		})(ctx, r)
	})
}

// multiRound asks twice; the state says how far it is.
func multiRound(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	round := strings.TrimPrefix(r.Params.RequestState, "round-")
	if len(r.Params.InputResponses) == 0 {
		round = ""
	}
	switch round {
	case "":
		return mcpserver.NewInputRequestBuilder("round-1").Elicit("step1", askName).ToolResult(), nil
	case "1":
		return mcpserver.NewInputRequestBuilder("round-2").Elicit("step2", askName).ToolResult(), nil
	}
	return fixtureText("thank you, twice"), nil
}
