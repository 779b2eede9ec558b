package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server"
	"github.com/perstack-ai/perstack-base/tools"
)

const (
	fixtureImage = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	fixtureAudio = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

type fixtureHandler = mcpserver.ToolHandlerFunc

// answers is a tool that always says the same.
func answers(content ...mcp.Content) fixtureHandler {
	return func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: content}, nil
	}
}

func embedded(uri, kind, text string) mcp.Content {
	return mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: uri, MIMEType: kind, Text: text})
}

func addTools(m *mcpserver.MCPServer) {
	add := func(name string, h fixtureHandler) {
		m.AddTool(mcp.NewTool(name, mcp.WithDescription("A fixture.")), h)
	}
	add("test_image_content", answers(mcp.NewImageContent(fixtureImage, "image/png")))
	add("test_audio_content", answers(mcp.NewAudioContent(fixtureAudio, "audio/wav")))
	add("test_embedded_resource", answers(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")))
	add("test_multiple_content_types", answers(mcp.NewTextContent("Multiple content types test:"), mcp.NewImageContent(fixtureImage, "image/png"),
		embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)))
	add("test_error_handling", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("This tool intentionally returns an error for testing"), nil
	})
	add("test_tool_with_logging", logs)
	add("test_logging_tool", answers(mcp.NewTextContent("nothing was asked to be logged")))
	add("test_tool_with_progress", progresses)
	add("test_missing_capability", answers(mcp.NewTextContent("the client has sampling")))
	add("test_streaming_elicitation", needs(func(b *mcpserver.InputRequestBuilder) { b.Elicit("user_name", askName) }))
	add("test_trigger_tool_change", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		m.SendNotificationToAllClients(string(mcp.MethodNotificationToolsListChanged), nil)
		return fixtureText("tools/list_changed was sent"), nil
	})
	add("test_trigger_prompt_change", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		m.SendNotificationToAllClients(string(mcp.MethodNotificationPromptsListChanged), nil)
		return fixtureText("prompts/list_changed was sent"), nil
	})
	addAskingTools(m)
	m.AddTool(mcp.NewToolWithRawSchema("test_custom_headers", "A fixture.", json.RawMessage(
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`)), answers(mcp.NewTextContent("ok")))
	m.AddTool(mcp.NewToolWithRawSchema("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", json.RawMessage(schema2020)), answers(mcp.NewTextContent("ok")))
}

const schema2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"$anchor":"addressDef","type":"object",` +
	`"properties":{"street":{"type":"string"},"city":{"type":"string"}}}},"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},` +
	`"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},` +
	`{"required":["email"]}]}],"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},` +
	`"else":{"required":["email"]},"additionalProperties":false}`

func fixtureText(s string) *mcp.CallToolResult { return mcp.NewToolResultText(s) }

func logs(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if notify := tools.NotifierFrom(ctx); notify != nil {
		for _, message := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			notify("notifications/message", map[string]any{"level": "info", "logger": server.Name, "data": message})
		}
	}
	return fixtureText("Tool with logging executed successfully"), nil
}

func progresses(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	notify := tools.NotifierFrom(ctx)
	if notify == nil || r.Params.Meta == nil || r.Params.Meta.ProgressToken == nil {
		return fixtureText("nobody wants to know"), nil
	}
	for _, progress := range []int{0, 50, 100} {
		notify("notifications/progress", map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": progress, "total": 100})
	}
	return fixtureText("progress reported"), nil
}

// addAskingTools adds those that ask a legacy client something while they run.
func addAskingTools(m *mcpserver.MCPServer) {
	m.AddTool(mcp.NewTool("test_sampling", mcp.WithDescription("A fixture."), mcp.WithString("prompt", mcp.Required())),
		func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			//lint:ignore SA1019 the suite wants to see it
			result, err := m.RequestSampling(ctx, mcp.CreateMessageRequest{CreateMessageParams: sample(r.GetString("prompt", ""))})
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			said, _ := result.Content.(mcp.TextContent)
			return fixtureText("LLM response: " + said.Text), nil
		})
	asks := func(name, label string, message func(mcp.CallToolRequest) string, properties map[string]any, required ...string) {
		m.AddTool(mcp.NewTool(name, mcp.WithDescription("A fixture."), mcp.WithString("message")),
			func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				schema := map[string]any{"type": "object", "properties": properties}
				if required != nil {
					schema["required"] = required
				}
				result, err := m.RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: message(r), RequestedSchema: schema}})
				if err != nil {
					return mcp.NewToolResultError(err.Error()), nil
				}
				return fixtureText(fmt.Sprintf("%s: action=%s, content=%v", label, result.Action, result.Content)), nil
			})
	}
	given := func(r mcp.CallToolRequest) string { return r.GetString("message", "") }
	plain := func(mcp.CallToolRequest) string { return "Provide your information" }
	asks("test_elicitation", "User response", given, map[string]any{
		"username": map[string]any{"type": "string", "description": "User's response"},
		"email":    map[string]any{"type": "string", "description": "User's email address"},
	}, "username", "email")
	asks("test_elicitation_sep1034_defaults", "Elicitation completed", plain, map[string]any{
		"name":     map[string]any{"type": "string", "default": "John Doe"},
		"age":      map[string]any{"type": "integer", "default": 30},
		"score":    map[string]any{"type": "number", "default": 95.5},
		"status":   map[string]any{"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"},
		"verified": map[string]any{"type": "boolean", "default": true},
	})
	titled := []any{map[string]any{"const": "value1", "title": "Value One"}, map[string]any{"const": "value2", "title": "Value Two"}}
	asks("test_elicitation_sep1330_enums", "Elicitation completed", plain, map[string]any{
		"untitledSingle": map[string]any{"type": "string", "enum": []string{"option1", "option2"}},
		"titledSingle":   map[string]any{"type": "string", "oneOf": titled},
		"legacyEnum":     map[string]any{"type": "string", "enum": []string{"opt1", "opt2"}, "enumNames": []string{"Option One", "Option Two"}},
		"untitledMulti":  map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": []string{"option1", "option2"}}},
		"titledMulti":    map[string]any{"type": "array", "items": map[string]any{"anyOf": titled}},
	})
}

func sample(prompt string) mcp.CreateMessageParams {
	return mcp.CreateMessageParams{Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(prompt)}}, MaxTokens: 100}
}
