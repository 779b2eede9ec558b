package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/tools"
)

// begins says that the work begins, which is when a call may become a task.
func begins(ctx context.Context) {
	if task := tools.TaskOf(ctx); task != nil {
		task.Begin()
	}
}

// addTaskTools adds those that take their time.
func addTaskTools(m *mcpserver.MCPServer) {
	m.AddTool(mcp.NewTool("greet", mcp.WithDescription("A fixture."), mcp.WithString("name")),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return fixtureText("Hello, " + r.GetString("name", "") + "!"), nil
		})
	add := func(name string, h fixtureHandler) {
		m.AddTool(mcp.NewTool(name, mcp.WithDescription("A fixture.")), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			begins(ctx)
			return h(ctx, r)
		})
	}
	add("slow_compute", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return afterWork(ctx, r.GetFloat("seconds", 1), "computed "+r.GetString("label", "it"))
	})
	add("failing_job", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		result, err := afterWork(ctx, 1, "the job has failed, as it always does")
		result.IsError = true
		return result, err
	})
	add("confirm_delete", asking("confirm"))
	add("multi_input", asking("name", "confirm"))
	m.AddTool(mcp.NewTool("protocol_error_job", mcp.WithDescription("A fixture.")), answers()) // see breaks
	m.AddTool(mcp.NewTool("test_tool_with_task", mcp.WithDescription("A fixture.")), greetsLate)
}

// afterWork answers when some seconds are over, or the call is cancelled.
func afterWork(ctx context.Context, seconds float64, text string) (*mcp.CallToolResult, error) {
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		return fixtureText(text), nil
	case <-ctx.Done():
		return mcp.NewToolResultError("cancelled"), nil
	}
}

// asking is a tool that asks some questions at once in the middle of its work.
func asking(questions ...string) fixtureHandler {
	return func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		task := tools.TaskOf(ctx)
		if task == nil {
			return mcp.NewToolResultError("there is nobody to ask"), nil
		}
		said := make(chan string, len(questions))
		for _, q := range questions {
			go func() {
				answer, err := task.RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{
					Message: q + "?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{q: map[string]any{"type": "string"}}},
				}})
				if err != nil {
					said <- q + ": " + err.Error()
					return
				}
				said <- q + ": " + string(answer.Action)
			}()
		}
		var all []string
		for range questions {
			all = append(all, <-said)
		}
		slices.Sort(all)
		return fixtureText(fmt.Sprint(all)), nil
	}
}

// greetsLate asks before its work, which is by an answer, and then becomes a task.
func greetsLate(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answer := mcpserver.ElicitationResponse(r.Params.InputResponses, "user_name")
	if answer == nil {
		return mcpserver.NewInputRequestBuilder(fixtureState).Elicit("user_name", askName).ToolResult(), nil
	}
	begins(ctx)
	return afterWork(ctx, 0.5, fmt.Sprintf("Hello, %v!", answer.Content))
}

// breaks answers with errors of the protocol: for want of the extension, and for a
// call that fails as no tool can.
func breaks(ctx context.Context, tool string) (*mcp.JSONRPCErrorDetails, bool) {
	switch {
	case tool == "failing_job" && tools.TaskOf(ctx) == nil:
		need := map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}}}
		return &mcp.JSONRPCErrorDetails{Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: "this tool answers with tasks only", Data: need}, true
	case tool == "protocol_error_job":
		begins(ctx)
		<-time.After(500 * time.Millisecond)
		return &mcp.JSONRPCErrorDetails{Code: mcp.INVALID_PARAMS, Message: "the job broke the protocol"}, true
	}
	return nil, false
}
