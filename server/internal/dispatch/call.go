package dispatch

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/tools"
)

// callTool runs a tool without mcp-go, which would parse the message three times
// more. What handlers see is the same, and so are the answers.
func (d *Dispatcher) callTool(ctx context.Context, r *Request, client mcpserver.ClientSession, handler mcpserver.ToolHandlerFunc) (any, *jsonrpc.Error) {
	var req mcp.CallToolRequest
	req.Method = r.Method
	req.Params.Name, req.Params.Arguments = r.Tool, r.params.Arguments
	req.Params.Task, req.Params.MultiRoundTripParams = r.params.Task, r.params.MultiRoundTripParams
	if meta, ok := r.params.Meta.(map[string]any); ok {
		req.Params.Meta = mcp.NewMetaFromMap(meta)
		delete(meta, "progressToken") // also one that is null
	}
	info := protocolInfo(r, req.Params.Meta)
	switch {
	case info.Modern && info.ClientCapabilities == nil:
		return nil, jsonrpc.InvalidParams("missing or invalid _meta field " + mcp.MetaKeyClientCapabilities)
	case r.malformed:
		return nil, r.formFault()
	}
	ctx = mcpserver.WithRequestProtocolInfo(ctx, info)
	if asker, ok := client.(tools.Asker); ok && !info.Modern {
		ctx = tools.WithAsker(ctx, asker)
	}
	result, err := handler(ctx, req)
	if err != nil || result == nil {
		return nil, internalError()
	}
	if r.Modern {
		Decorate(&result.Result, d.Identity)
	}
	return result, nil
}

// protocolInfo is what a request says of its client.
func protocolInfo(r *Request, meta *mcp.Meta) *mcpserver.RequestProtocolInfo {
	info := &mcpserver.RequestProtocolInfo{ProtocolVersion: r.Version, Modern: r.Modern}
	if r.Modern {
		info.ClientInfo, info.LogLevel = meta.ClientInfo(), meta.LogLevel()
		info.ClientCapabilities = meta.ClientCapabilities()
	}
	return info
}

// Decorate adds what every result of the modern era has.
func Decorate(r *mcp.Result, server mcp.Implementation) {
	if r.ResultType == "" {
		r.SetResultType(mcp.ResultTypeComplete)
	}
	if meta := r.EnsureResultMeta(); meta.ServerInfo() == nil {
		meta.SetServerInfo(server)
	}
}
