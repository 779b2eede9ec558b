package server

import (
	"context"
	"strings"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/server/internal/skillsapi"
)

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
