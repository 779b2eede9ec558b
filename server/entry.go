package server

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/views"
	"github.com/perstack-ai/perstack-base/tools"
)

// An entry is a tool that is listed. Its schemas are made when it is first listed or
// called: an agent waits for its servers to start, and starts more than it uses.
type entry struct {
	selected
	bound func() mcpserver.ServerTool
}

func (l *lists) entry(c selected) entry {
	return entry{c, sync.OnceValue(func() mcpserver.ServerTool { return c.tool.Bind(l.env, c.profile) })}
}

// is tells whether both are the same tool, perhaps with other words.
func (e entry) is(other entry) bool { return e.tool == other.tool }

// reads tells whether a client reads the same in both.
func (e entry) reads(other entry) bool {
	a, b := e.bound().Tool, other.bound().Tool
	return a.Description == b.Description && string(a.RawInputSchema) == string(b.RawInputSchema)
}

// toFollow is in place of the schema that complete fills in. No tool has such a one.
var toFollow = json.RawMessage("null")

// registration is what mcp-go is told of a tool, which reads all schemas it is given.
func (e entry) registration() mcpserver.ServerTool {
	return mcpserver.ServerTool{
		Tool: mcp.Tool{Name: e.tool.Name, RawInputSchema: toFollow},
		Handler: func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return e.bound().Handler(ctx, req)
		},
	}
}

// complete makes entries of tools/list of what mcp-go was told, with the view of each
// tool that has one for clients that show them. It is a filter of mcp-go.
func (l *lists) complete(ctx context.Context, listed []mcp.Tool) []mcp.Tool {
	shows := tools.TakesViews(ctx)
	listed = slices.Clone(listed)
	for i := range listed {
		e := l.find(listed[i].Name)
		if e == nil {
			continue // of an Extension
		}
		listed[i] = e.bound().Tool
		if shows && e.tool.View != "" {
			listed[i].Meta = views.Named(listed[i].Meta, e.tool.View)
		}
	}
	// A tool may have gone while they were counted.
	return slices.DeleteFunc(listed, func(t mcp.Tool) bool { return string(t.RawInputSchema) == string(toFollow) })
}
