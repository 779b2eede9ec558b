package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/sandbox/trace"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/server/internal/tasks"
	"github.com/perstack-ai/perstack-base/tools"
)

// A Router answers JSON-RPC messages; *mcpserver.MCPServer is one.
type Router interface {
	HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage
	WithContext(ctx context.Context, session mcpserver.ClientSession) context.Context
	RegisterSession(ctx context.Context, session mcpserver.ClientSession) error
	UnregisterSession(ctx context.Context, sessionID string)
}

// Methods answers requests that the router cannot. It is asked first; handled
// false passes the request on.
type Methods interface {
	Answer(ctx context.Context, r *Request) (result any, fault *jsonrpc.Error, handled bool)
}

// Tools are the tools of a server.
type Tools interface {
	// Tool returns the tool of that name as it is listed, nil when there is none.
	Tool(name string) *mcp.Tool
	// Handler returns what runs the tool, nil when the router is to run it.
	Handler(tool string) mcpserver.ToolHandlerFunc
	// Lane names the lane that calls of the tool wait in, "" for none.
	Lane(tool string) string
	// Lasts tells whether a call of the tool may take long enough to become a task.
	Lasts(tool string) bool
}

// A Dispatcher is what the transports of a server have in common.
type Dispatcher struct {
	Router   Router
	Methods  Methods
	Tools    Tools
	Tasks    *tasks.Registry    // nil: every call is answered when it is over
	Identity mcp.Implementation // of the server
	Versions []string           // protocol versions served, all when empty
	Log      *slog.Logger       // not nil

	Trace     *trace.Tracer // nil: no spans
	Transport string        // for spans, "" = not said
}

// Handle asks whatever is in charge of the request; client is the one of legacy
// requests.
func (d *Dispatcher) Handle(ctx context.Context, r *Request, client mcpserver.ClientSession) (result any, fault *jsonrpc.Error) {
	ctx = d.beginSpan(ctx, r, client)
	if fault = d.refusal(r); fault == nil {
		r.routed = true
		if d.becomesTask(r) {
			return d.serveTask(ctx, r, client) // whose span ends with the work
		}
		result, fault = d.answer(ctx, r, client)
	}
	d.endSpan(ctx, r, client, result, fault)
	return result, fault
}

// refusal says why r is not served whatever it asks for, nil when it is.
func (d *Dispatcher) refusal(r *Request) *jsonrpc.Error {
	if r.Removed() {
		return methodNotFound(r.Method)
	}
	return r.Check(d.Versions)
}

// answer has the request answered. A panic is answered as a failure: the server goes on.
func (d *Dispatcher) answer(ctx context.Context, r *Request, client mcpserver.ClientSession) (result any, fault *jsonrpc.Error) {
	defer func() {
		if recover() != nil {
			d.Log.ErrorContext(ctx, "panic", "method", jsonrpc.Clip(r.Method, 100), "tool", jsonrpc.Clip(r.Tool, 100), "stack", string(debug.Stack()))
			result, fault = nil, internalError()
		}
	}()
	if r.Subscribes(d.Versions) {
		return d.listen(ctx, r)
	}
	if result, fault, handled := d.answerTask(r); handled {
		return result, fault
	}
	if r.Modern {
		one := NewSession(client.SessionID(), nil)
		one.MarkReady()
		client = one
	}
	if takesViews(r, client) {
		ctx = tools.WithViews(ctx)
	}
	ctx = d.Router.WithContext(ctx, client)
	if result, fault, handled := d.Methods.Answer(ctx, r); handled {
		return result, fault
	}
	if r.Method == MethodToolsCall {
		if handler := d.Tools.Handler(r.Tool); handler != nil {
			return d.callTool(ctx, r, client, handler)
		}
	}
	return d.route(ctx, r)
}

func internalError() *jsonrpc.Error { return &jsonrpc.Error{Code: mcp.INTERNAL_ERROR} }

// route has mcp-go answer, and takes its answer apart, so that the id can be set
// as it was sent.
func (d *Dispatcher) route(ctx context.Context, r *Request) (any, *jsonrpc.Error) {
	message, err := r.message()
	if err != nil {
		return nil, internalError()
	}
	switch m := d.Router.HandleMessage(ctx, message).(type) {
	case mcp.JSONRPCResponse:
		return m.Result, nil
	case mcp.JSONRPCError:
		if m.Error.Code == mcp.INVALID_REQUEST { // the envelope is ours: its params did not decode
			return nil, r.formFault()
		}
		return nil, &jsonrpc.Error{Code: m.Error.Code, Message: m.Error.Message, Data: m.Error.Data}
	}
	return nil, internalError()
}

// Encode makes the line of an answer. What cannot be sent becomes a failure
// that can. It returns the error that was sent, nil for a result.
func (r *Request) Encode(result any, fault *jsonrpc.Error) ([]byte, *jsonrpc.Error) {
	id := []byte(r.ID)
	if fault == nil {
		line, err := jsonrpc.EncodeAnswer(id, result)
		if err == nil {
			return line, nil
		}
		result, fault = r.unsendable(err)
	} else if fault.Code == mcp.INTERNAL_ERROR {
		result, fault = r.failed(fault.Message)
	}
	if fault == nil {
		if line, err := jsonrpc.EncodeAnswer(id, result); err == nil {
			return line, nil
		}
		fault = jsonrpc.InvalidRequest("the answer does not fit into a message")
	}
	return jsonrpc.EncodeError(id, fault), fault
}

// unsendable says why a result is not sent.
func (r *Request) unsendable(err error) (any, *jsonrpc.Error) {
	var large *jsonrpc.TooLargeError
	if !errors.As(err, &large) {
		return r.failed("")
	}
	if r.Method == MethodToolsCall {
		return r.toolError("too_large: the result of " + jsonrpc.Clip(r.Tool, 100) + " is " + large.Error() + "; ask for less at a time"), nil
	}
	return nil, jsonrpc.InvalidParams("the result of " + jsonrpc.Clip(r.Method, 100) + " is " + large.Error())
}

// failed words a fault that is not the client's. A tool's call has a result
// even then, and no text of Go's reaches it; a resource's or prompt's handler
// gives the text.
func (r *Request) failed(text string) (any, *jsonrpc.Error) {
	if r.Method == MethodToolsCall {
		return r.toolError("internal: " + jsonrpc.Clip(r.Tool, 100) + " failed inside the server; the server goes on."), nil
	}
	if text == "" {
		text = jsonrpc.Clip(r.Method, 100) + " failed inside the server; the server goes on."
	}
	return nil, jsonrpc.InvalidParams(text)
}

func (r *Request) toolError(text string) *mcp.CallToolResult {
	result := &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(text)}, IsError: true}
	if r.Modern {
		result.ResultType = mcp.ResultTypeComplete
	}
	return result
}
