package server

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/server/internal/skillsapi"
)

// An Extension is what a program that embeds the server adds by means of mcp-go,
// where a profile of tools is not enough. Every field may be left out.
type Extension struct {
	// Options are given to mcp-go after the server's own: capabilities, hooks,
	// middleware. Tools of profiles are called without mcp-go, so its hooks and
	// middleware see only those that Register adds.
	Options []mcpserver.ServerOption

	// Register adds tools, prompts and resources, once, in [New]. They are listed
	// beside the server's. It must not take the name of one of the server's tools:
	// mcp-go would replace it. A handler whose work may take long calls Begin of
	// [tools.TaskOf] once all questions are settled. URIs that begin with skill:// or artifact:// are always
	// answered by the server.
	Register func(*mcpserver.MCPServer)

	// Intercept is asked before anything else answers a request; handled false
	// passes the request on. It runs once for each request, many at a time.
	Intercept func(ctx context.Context, r Request) (result any, err *mcp.JSONRPCErrorDetails, handled bool)
}

// A Request is one request of a client, as Extension.Intercept sees it.
type Request struct {
	Method  string          // tools/call, …
	Params  json.RawMessage // as sent; nil = none
	Version string          // the protocol version that its _meta names; "" = none
}

func (e *Extension) registers() bool { return e != nil && e.Register != nil }

// methods answer what mcp-go cannot: it has no words for an unknown tool, and
// knows nothing of skills.
type methods struct {
	lists     *lists
	skills    *skillsapi.API
	extension *Extension
}

var _ dispatch.Methods = (*methods)(nil)

// Answer implements [dispatch.Methods].
func (m *methods) Answer(ctx context.Context, r *dispatch.Request) (any, *jsonrpc.Error, bool) {
	if result, fault, handled := m.intercept(ctx, r); handled {
		return result, fault, true
	}
	if strings.HasPrefix(r.Method, "prompts/") {
		m.lists.refresh(ctx)
		m.lists.refreshPrompt(ctx, r)
	}
	if r.Method == dispatch.MethodToolsCall && r.Tool != "" && m.lists.Tool(r.Tool) == nil {
		return nil, jsonrpc.InvalidParams(m.lists.unknownTool(r.Tool)), true
	}
	return m.skills.Answer(ctx, r)
}

// intercept asks the embedding program.
func (m *methods) intercept(ctx context.Context, r *dispatch.Request) (any, *jsonrpc.Error, bool) {
	if m.extension == nil || m.extension.Intercept == nil {
		return nil, nil, false
	}
	result, err, handled := m.extension.Intercept(ctx, Request{Method: r.Method, Params: r.Params, Version: r.Version})
	if !handled || err == nil {
		return result, nil, handled
	}
	return nil, &jsonrpc.Error{Code: err.Code, Message: err.Message, Data: err.Data}, true
}
