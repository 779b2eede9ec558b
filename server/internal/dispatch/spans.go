package dispatch

import (
	"context"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/sandbox/trace"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

// Attributes of the span of a request, as OpenTelemetry's conventions for MCP name them.
const (
	attrMethod    = "mcp.method.name"
	attrTool      = "gen_ai.tool.name"
	attrOperation = "gen_ai.operation.name"
	attrVersion   = "mcp.protocol.version"
	attrTransport = "network.transport"
	attrRequestID = "jsonrpc.request.id"
	attrSession   = "mcp.session.id"
	attrErrorType = "error.type"
)

// Values of these.
const (
	operationTool  = "execute_tool"
	errorTool      = "tool_error"
	errorCancelled = "cancelled"
	otherMethod    = "_OTHER" // an unknown one: its name is whatever the client sent
)

// Values of Dispatcher.Transport.
const (
	TransportPipe = "pipe"
	TransportTCP  = "tcp"
	TransportUnix = "unix"
)

// What of the metadata of a request names the span of its client.
const (
	metaTraceparent = "traceparent"
	metaTracestate  = "tracestate"
)

// maxSpanID bounds the id of a request in its span.
const maxSpanID = 100

// beginSpan begins the span of a request, where there are spans.
func (d *Dispatcher) beginSpan(ctx context.Context, r *Request, client mcpserver.ClientSession) context.Context {
	if d.Trace == nil {
		return ctx
	}
	meta, _ := r.params.Meta.(map[string]any)
	parent, _ := meta[metaTraceparent].(string)
	state, _ := meta[metaTracestate].(string)
	ctx, r.span = d.Trace.Serve(ctx, otherMethod, trace.ParseParent(parent, state), r.Received)
	if r.Method == MethodToolsCall {
		nameToolSpan(r.span, d.listed(r.Tool))
	}
	if d.Transport != "" {
		r.span.Text(attrTransport, d.Transport)
	}
	id := r.ID
	if jsonrpc.IsString([]byte(id)) {
		id = jsonrpc.Unquote([]byte(id))
	}
	r.span.Text(attrRequestID, jsonrpc.Clip(id, maxSpanID))
	if session := client.SessionID(); session != "" {
		r.span.Text(attrSession, d.Trace.SessionID(session))
	}
	return ctx
}

// listed is the name of a tool, "" when there is none of that name.
func (d *Dispatcher) listed(tool string) string {
	if tool == "" || d.Tools.Handler(tool) == nil && d.Tools.Tool(tool) == nil {
		return ""
	}
	return tool
}

// nameToolSpan says that a span is that of a call of a tool, "" for one that is not listed.
func nameToolSpan(s *trace.Span, tool string) {
	s.Rename(MethodToolsCall, tool)
	s.Text(attrMethod, MethodToolsCall)
	s.Text(attrOperation, operationTool)
	if tool != "" {
		s.Text(attrTool, tool)
	}
}

// endSpan ends the span of a request with what has come of it.
func (d *Dispatcher) endSpan(ctx context.Context, r *Request, client mcpserver.ClientSession, result any, fault *jsonrpc.Error) {
	if r.span == nil {
		return
	}
	if r.Method != MethodToolsCall {
		name := otherMethod
		if r.routed && (fault == nil || fault.Code != mcp.METHOD_NOT_FOUND) {
			name = jsonrpc.Clip(r.Method, maxSpanID)
		}
		r.span.Rename(name, "")
		r.span.Text(attrMethod, name)
	}
	if version := d.protocol(r, client); version != "" {
		r.span.Text(attrVersion, version)
	}
	if fault != nil && fault.Code == mcp.INTERNAL_ERROR { // as it will be sent
		result, fault = r.failed(fault.Message)
	}
	switch {
	case fault != nil:
		r.span.Text(attrErrorType, strconv.Itoa(fault.Code))
		r.span.Fail()
	case isToolError(result):
		r.span.Text(attrErrorType, errorTool)
		r.span.Fail()
	case ctx.Err() != nil && r.Method != MethodListen: // which ends so
		r.span.Text(attrErrorType, errorCancelled)
		r.span.Fail()
	}
	r.span.End()
}

func isToolError(result any) bool {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		return r.IsError
	case mcp.CallToolResult:
		return r.IsError
	}
	return false
}

// protocol is the version that a request is served by, "" when that is not known.
func (d *Dispatcher) protocol(r *Request, client mcpserver.ClientSession) string {
	if r.Modern {
		if mcp.IsValidProtocolVersion(r.Version) {
			return r.Version
		}
		return ""
	}
	if c, ok := client.(mcpserver.SessionWithProtocolVersion); ok {
		return c.ProtocolVersion()
	}
	return ""
}

// Refused tells of a request that its transport has answered: with a fault, or where
// that is nil not at all, because it was cancelled before its turn came.
func (d *Dispatcher) Refused(ctx context.Context, r *Request, client mcpserver.ClientSession, fault *jsonrpc.Error) {
	if d.Trace == nil {
		return
	}
	ctx = d.beginSpan(ctx, r, client)
	if r.routed = fault == nil; r.routed {
		r.span.Text(attrErrorType, errorCancelled)
		r.span.Fail()
	}
	d.endSpan(ctx, r, client, nil, fault)
}

// InSpan returns ctx as what belongs to the span of the request.
func (r *Request) InSpan(ctx context.Context) context.Context { return trace.With(ctx, r.span) }

// CallTool runs a tool for a call that came over no transport, in a span like that of
// one that did.
func CallTool(ctx context.Context, t *trace.Tracer, req mcp.CallToolRequest, handler mcpserver.ToolHandlerFunc) (*mcp.CallToolResult, error) {
	ctx, span := t.Serve(ctx, otherMethod, trace.Parent{}, time.Time{})
	defer span.End()
	nameToolSpan(span, req.Params.Name)
	result, err := handler(ctx, req)
	if err != nil || result == nil || result.IsError {
		span.Text(attrErrorType, errorTool)
		span.Fail()
	}
	return result, err
}
