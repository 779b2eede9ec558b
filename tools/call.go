package tools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/trace"
)

// maxResultBytes bounds the text of one result: clients drop a connection that
// sends a message over 10 MiB, and JSON quoting can grow a text.
const maxResultBytes = 7 << 20

// attrErrorCode has our code in the span of a call that failed.
const attrErrorCode = "perstack_base.error.code"

// Bind makes a tool of profile p ready for the server of env. Its handler is the
// one way of every call: recover, bind, the tool's function, the dialect, size.
// It never returns a Go error, which would become a protocol error.
func (t *Tool) Bind(env *Env, p *Profile) mcpserver.ServerTool {
	listing := t.listing(env)
	handle := func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		start := time.Now()
		call := &Call{Env: env, Profile: p, Tool: t}
		ctx, shown := t.withShown(ctx)
		result := t.answer(withProgress(ctx, req), env, listing.Input, call, req)
		shown.addTo(result)
		audit(ctx, env, call, result, time.Since(start))
		return result, nil
	}
	return mcpserver.ServerTool{Tool: t.entry(env, listing), Handler: handle}
}

// answer runs one call to its result, whatever happens on the way.
func (t *Tool) answer(ctx context.Context, env *Env, schema *Schema, call *Call, req mcp.CallToolRequest) (result *mcp.CallToolResult) {
	defer func() {
		if v := recover(); v != nil {
			env.Log.ErrorContext(ctx, "a tool panicked", "tool", t.Name, "panic", panicKind(v), "stack", string(debug.Stack()))
			e := Errorf(fault.Internal, "", "%s failed inside the server; the server goes on.", t.Name)
			result = t.fail(ctx, env, call, e)
		}
	}()
	watch := watchOf(ctx)
	if watch == nil {
		return t.run(ctx, env, schema, call, req.Params.Arguments)
	}
	return t.watched(ctx, watch, env, schema, call, req)
}

// run makes one call that no hook watches.
func (t *Tool) run(ctx context.Context, env *Env, schema *Schema, call *Call, raw any) *mcp.CallToolResult {
	args, err := arguments(raw)
	call.Args = args
	var out any
	if err == nil {
		t.begin(ctx)
		out, err = t.call(ctx, env, schema, args)
	}
	if err != nil {
		return t.fail(ctx, env, call, err)
	}
	result := call.Profile.Dialect.OK(call, out)
	if size := textBytes(result); size > maxResultBytes {
		e := Errorf(fault.TooLarge, "Ask for less at once.", "The result has %d bytes, more than the %d a message may carry.", size, maxResultBytes)
		return t.fail(ctx, env, call, e)
	}
	return result
}

func (t *Tool) fail(ctx context.Context, env *Env, call *Call, err error) *mcp.CallToolResult {
	e := asError(env, err)
	if t.OnFail != nil {
		t.OnFail(ctx, env, call, e)
	}
	if e.Code == fault.Internal && e.Err != nil {
		env.Log.ErrorContext(ctx, "a call failed", "tool", t.Name, "error", errorKind(err))
	}
	trace.Of(ctx).Text(attrErrorCode, string(e.Code))
	result := call.Profile.Dialect.Fail(call, e)
	result.IsError = true
	return result
}

// errorKind says for the log what kind of failure an error is: the types it is made
// of and the system's error. Its text stays out, for it may quote arguments.
func errorKind(err error) string {
	var kinds []string
	for next := err; next != nil; next = errors.Unwrap(next) {
		if errno, ok := next.(syscall.Errno); ok {
			return strings.Join(append(kinds, errno.Error()), " > ")
		}
		kinds = append(kinds, fmt.Sprintf("%T", next))
	}
	if errno := syscall.Errno(0); errors.As(err, &errno) { // in one of several
		kinds = append(kinds, errno.Error())
	}
	return strings.Join(kinds, " > ")
}

// panicKind does so for what a tool panicked with.
func panicKind(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return err.Error() // an index, a type: nothing of the call
	}
	return fmt.Sprintf("%T", v)
}

// audit writes the one line that every call leaves: never arguments or contents.
func audit(ctx context.Context, env *Env, call *Call, result *mcp.CallToolResult, took time.Duration) {
	if !env.Log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	outcome := "ok"
	if result.IsError {
		outcome = "error"
	}
	env.Log.Log(ctx, slog.LevelInfo, "call", "tool", call.Tool.Name, "profile", call.Profile.Name,
		"outcome", outcome, "ms", float64(took.Microseconds())/1000, "bytes", textBytes(result))
}

// textBytes counts what a result carries; structuredContent repeats the text.
func textBytes(r *mcp.CallToolResult) int {
	n := 0
	for _, c := range r.Content {
		switch c := c.(type) {
		case mcp.TextContent:
			n += len(c.Text)
		case mcp.ImageContent:
			n += len(c.Data)
		}
	}
	return n
}
