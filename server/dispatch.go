package server

import (
	"bytes"
	"context"
	"errors"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// handle asks whoever is in charge of the request, whatever it came over; who
// is the client of legacy requests. A panic is answered as a failure: the
// server goes on.
func (cfg *connConfig) handle(ctx context.Context, r *request, who mcpserver.ClientSession) (result any, fault *rpcError) {
	defer func() {
		if recover() != nil {
			cfg.log.Error("panic", "method", clip(r.method, 100), "tool", clip(r.tool, 100), "stack", string(debug.Stack()))
			result, fault = nil, &rpcError{Code: mcp.INTERNAL_ERROR}
		}
	}()
	if fault := r.check(cfg.versions); fault != nil {
		return nil, fault
	}
	if r.subscribes(cfg.versions) {
		return cfg.listen(ctx, r)
	}
	if r.modern {
		who = &session{id: who.SessionID(), ready: true}
	}
	ctx = cfg.handler.WithContext(ctx, who)
	if cfg.intercept != nil {
		if result, fault, handled := cfg.intercept(ctx, r); handled {
			return result, fault
		}
	}
	return r.unwrap(cfg.handler.HandleMessage(ctx, r.body))
}

// unwrap takes mcp-go's answer apart, so that the id can be set as it was sent.
func (r *request) unwrap(reply mcp.JSONRPCMessage) (any, *rpcError) {
	switch m := reply.(type) {
	case mcp.JSONRPCResponse:
		return m.Result, nil
	case mcp.JSONRPCError:
		if m.Error.Code == mcp.INVALID_REQUEST { // the envelope is ours: its params did not decode
			return nil, invalidParams("the params of " + clip(r.method, 100) + " do not have the form that the protocol gives them")
		}
		return nil, &rpcError{Code: m.Error.Code, Message: m.Error.Message, Data: m.Error.Data}
	}
	return nil, &rpcError{Code: mcp.INTERNAL_ERROR}
}

// encode makes the line of an answer. What cannot be sent becomes a failure
// that can. It returns the error that was sent, nil for a result.
func (r *request) encode(buf *bytes.Buffer, result any, fault *rpcError) *rpcError {
	if fault == nil {
		err := encodeAnswer(buf, r.id, "result", result)
		if err == nil {
			return nil
		}
		result, fault = r.unsendable(err)
	} else if fault.Code == mcp.INTERNAL_ERROR {
		result, fault = r.failed(fault.Message)
	}
	if fault == nil {
		if encodeAnswer(buf, r.id, "result", result) == nil {
			return nil
		}
		fault = invalidRequest("the answer does not fit into a message")
	}
	encodeError(buf, []byte(r.id), fault)
	return fault
}

// unsendable says why a result is not sent.
func (r *request) unsendable(err error) (any, *rpcError) {
	var large *tooLargeError
	if !errors.As(err, &large) {
		return r.failed("")
	}
	if r.method == methodToolsCall {
		return r.toolError("too_large: the result of " + clip(r.tool, 100) + " is " + large.Error() + "; ask for less at a time"), nil
	}
	return nil, invalidParams("the result of " + clip(r.method, 100) + " is " + large.Error())
}

// failed words a fault that is not the client's. A tool's call has a result
// even then, and no text of Go's reaches it; a resource's or prompt's handler
// gives the text.
func (r *request) failed(text string) (any, *rpcError) {
	if r.method == methodToolsCall {
		return r.toolError("internal: " + clip(r.tool, 100) + " failed inside the server; the server goes on."), nil
	}
	if text == "" {
		text = clip(r.method, 100) + " failed inside the server; the server goes on."
	}
	return nil, invalidParams(text)
}

func (r *request) toolError(text string) *mcp.CallToolResult {
	result := &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(text)}, IsError: true}
	if r.modern {
		result.ResultType = mcp.ResultTypeComplete
	}
	return result
}
