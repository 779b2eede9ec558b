// Package servertest has what the tests of the server's packages share: a small MCP
// server behind a dispatcher, and the messages that are sent to it.
package servertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/tools"
)

// A Bench is an MCP server with small tools, and what they have seen.
type Bench struct {
	*mcpserver.MCPServer
	mu      sync.Mutex
	events  []string
	gates   map[string]chan struct{}
	Started chan string // the tag of every gate call as it starts
}

func (b *Bench) note(event string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, event)
}

// Seen returns what the calls of gate and lane have noted, in order.
func (b *Bench) Seen() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.events, " ")
}

// Gate returns what the calls with this tag wait for.
func (b *Bench) Gate(tag string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gates[tag] == nil {
		b.gates[tag] = make(chan struct{})
	}
	return b.gates[tag]
}

func text(s string) *mcp.CallToolResult { return mcp.NewToolResultText(s) }

// New has the tools noop, echo(text), gate(tag), lane(tag), deaf(tag),
// notes(n), big(n), panics, fails and ask.
func New() *Bench {
	b := &Bench{
		MCPServer: mcpserver.NewMCPServer("bench", "1", mcpserver.WithToolCapabilities(true),
			mcpserver.WithResourceCapabilities(false, true), mcpserver.WithElicitation()),
		gates: map[string]chan struct{}{}, Started: make(chan string, 10000),
	}
	add := func(name string, f func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		b.AddTool(mcp.NewTool(name), f)
	}
	add("noop", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("ok"), nil })
	add("echo", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(r.GetString("text", "")), nil
	})
	gate := func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		tag := r.GetString("tag", "")
		b.note("+" + tag)
		defer b.note("-" + tag)
		b.Started <- tag
		select {
		case <-b.Gate(tag):
			return text(tag), nil
		case <-ctx.Done():
			return mcp.NewToolResultError("cancelled"), nil
		}
	}
	add("gate", gate)
	add("lane", gate)
	add("deaf", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return gate(context.Background(), r)
	})
	add("notes", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		notify := tools.NotifierFrom(ctx)
		for i := range r.GetInt("n", 1) {
			notify("notifications/progress", map[string]any{"progress": i})
		}
		return text("ok"), nil
	})
	add("big", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("x", r.GetInt("n", 1))), nil
	})
	add("panics", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("secret") })
	add("fails", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("secret")
	})
	add("ask", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r, err := b.RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{
			Message: "really?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
		}})
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return text(string(r.Action)), nil
	})
	b.AddResource(mcp.NewResource("x://big", "big"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "x://big", Text: strings.Repeat("x", jsonrpc.MaxMessage)}}, nil
	})
	return b
}

// Dispatcher returns one that calls the tools of b directly.
func (b *Bench) Dispatcher() *dispatch.Dispatcher {
	return &dispatch.Dispatcher{
		Router: b.MCPServer, Methods: benchMethods{b}, Tools: benchTools{b}, Log: slog.New(slog.DiscardHandler),
		Identity: mcp.Implementation{Name: "bench", Version: "1"},
	}
}

type benchTools struct{ b *Bench }

func (t benchTools) Tool(string) *mcp.Tool { return nil }

func (t benchTools) Handler(name string) mcpserver.ToolHandlerFunc {
	if tool := t.b.GetTool(name); tool != nil {
		return tool.Handler
	}
	return nil
}

func (t benchTools) Lane(tool string) string {
	if tool == "lane" {
		return "list"
	}
	return ""
}

func (t benchTools) Lasts(string) bool { return true }

type benchMethods struct{ b *Bench }

func (m benchMethods) Answer(_ context.Context, r *dispatch.Request) (any, *jsonrpc.Error, bool) {
	switch {
	case r.Method == "skills/list":
		return map[string]any{"skills": []string{}}, nil, true
	case r.Method == dispatch.MethodToolsCall && m.b.GetTool(r.Tool) == nil:
		return nil, jsonrpc.InvalidParams(fmt.Sprintf("Unknown tool %q.", r.Tool)), true
	}
	return nil, nil, false
}
