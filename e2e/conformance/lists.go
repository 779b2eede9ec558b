package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

func addResources(m *mcpserver.MCPServer) {
	fixed := func(uri, name, kind string, contents mcp.ResourceContents) {
		m.AddResource(mcp.NewResource(uri, name, mcp.WithResourceDescription("A fixture."), mcp.WithMIMEType(kind)),
			func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
				return []mcp.ResourceContents{contents}, nil
			})
	}
	fixed("test://static-text", "static-text", "text/plain",
		mcp.TextResourceContents{URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource."})
	fixed("test://static-binary", "static-binary", "image/png",
		mcp.BlobResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: fixtureImage})
	fixed("test://watched-resource", "watched-resource", "text/plain",
		mcp.TextResourceContents{URI: "test://watched-resource", MIMEType: "text/plain", Text: "Watched resource content."})
	m.AddResourceTemplate(mcp.NewResourceTemplate("test://template/{id}/data", "template", mcp.WithTemplateDescription("A fixture."), mcp.WithTemplateMIMEType("application/json")),
		func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			text := fmt.Sprintf(`{"id":%q,"templateTest":true,"data":%q}`, id, "Data for ID: "+id)
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, MIMEType: "application/json", Text: text}}, nil
		})
}

func addPrompts(m *mcpserver.MCPServer) {
	says := func(content ...mcp.Content) (*mcp.GetPromptResult, error) {
		result := &mcp.GetPromptResult{}
		for _, c := range content {
			result.Messages = append(result.Messages, mcp.PromptMessage{Role: mcp.RoleUser, Content: c})
		}
		return result, nil
	}
	add := func(name string, h mcpserver.PromptHandlerFunc, arguments ...string) {
		options := []mcp.PromptOption{mcp.WithPromptDescription("A fixture.")}
		for _, a := range arguments {
			options = append(options, mcp.WithArgument(a, mcp.RequiredArgument()))
		}
		m.AddPrompt(mcp.NewPrompt(name, options...), h)
	}
	add("test_simple_prompt", func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return says(mcp.NewTextContent("This is a simple prompt for testing."))
	})
	add("test_prompt_with_arguments", func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		a := r.Params.Arguments
		return says(mcp.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])))
	}, "arg1", "arg2")
	add("test_prompt_with_embedded_resource", func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return says(embedded(r.Params.Arguments["resourceUri"], "text/plain", "Embedded resource content for testing."),
			mcp.NewTextContent("Please process the embedded resource above."))
	}, "resourceUri")
	add("test_prompt_with_image", func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return says(mcp.NewImageContent(fixtureImage, "image/png"), mcp.NewTextContent("Please analyze the image above."))
	})
	add("test_input_required_result_prompt", func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if _, ok := r.Params.InputResponses["user_context"]; !ok {
			return mcpserver.NewInputRequestBuilder("").Elicit("user_context", askName).PromptResult(), nil
		}
		return says(mcp.NewTextContent("With the context that was given."))
	})
}
