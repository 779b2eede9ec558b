package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/tools/internal/plan"
)

type plainDialect struct{}

func (plainDialect) OK(_ *Call, out any) *mcp.CallToolResult { return Object(out) }
func (plainDialect) Fail(_ *Call, e *Error) *mcp.CallToolResult {
	return Text(fmt.Sprintf("%s|%s|%s", e.Code, e.Msg, e.Hint))
}

type nothing struct{}

type words struct {
	Words string `json:"words" doc:"Some words to look at."`
}

// call runs fn as a tool with the arguments and returns the text of its result.
func call(t *testing.T, env *Env, args any, fn func(context.Context, *Env, nothing) (words, error)) (*mcp.CallToolResult, string) {
	t.Helper()
	tool := Define(Info{Name: "t", Title: "T", Description: "A tool.", Effect: Reads}, fn)
	ready := tool.Bind(env, &Profile{Name: "p", Dialect: plainDialect{}})
	var req mcp.CallToolRequest
	req.Params.Arguments = args
	result, err := ready.Handler(WithSession(t.Context(), NewSession("s", nil)), req)
	if err != nil {
		t.Fatal("a Go error would become a protocol error:", err)
	}
	return result, result.Content[0].(mcp.TextContent).Text
}

func newEnv(t *testing.T) (*Env, *bytes.Buffer) {
	t.Helper()
	files, err := files.Open(t.TempDir(), sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	var log bytes.Buffer
	return &Env{Files: files, Log: slog.New(slog.NewTextHandler(&log, nil))}, &log
}

func TestCallEndsWithAResult(t *testing.T) {
	env, log := newEnv(t)
	result, text := call(t, env, nil, func(context.Context, *Env, nothing) (words, error) { return words{"<ok>"}, nil })
	if result.IsError || text != `{"words":"<ok>"}` || string(result.RawStructuredContent) != text {
		t.Errorf("success: %+v", result)
	}
	result, text = call(t, env, nil, func(context.Context, *Env, nothing) (words, error) { panic("sesame") })
	if !result.IsError || text != "internal|t failed inside the server; the server goes on.|" || result.RawStructuredContent != nil {
		t.Errorf("panic: %s", text)
	}
	if strings.Contains(log.String(), "sesame") || !strings.Contains(log.String(), "panic=string") || !strings.Contains(log.String(), "call_test.go") {
		t.Errorf("a panic belongs into the log with its stack, and without its value: %s", log)
	}
	_, text = call(t, env, nil, func(context.Context, *Env, nothing) (words, error) {
		return words{strings.Repeat("x", maxResultBytes)}, nil
	})
	if !strings.HasPrefix(text, "too_large|The result has ") {
		t.Errorf("too large: %.100s", text)
	}
	for args, want := range map[string]any{
		"a list": []any{}, "a text": "x", "a number": 1.0, "true or false": true,
	} {
		if _, text = call(t, env, want, nil); text != "bad_input|arguments must be an object, not "+args+".|" {
			t.Errorf("arguments %v: %s", want, text)
		}
	}
}

func TestErrorsAreWorded(t *testing.T) {
	env, _ := newEnv(t)
	path := func(err error) error {
		return &sandbox.PathError{Path: "a/b", Parent: "a", Detail: "is too long", Err: err}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{path(sandbox.ErrEscapes), "outside_workspace|a/b is outside the workspace.|"},
		{path(sandbox.ErrReserved), "denied|Access to the perstack directory is denied.|"},
		{path(sandbox.ErrBadPath), "bad_input|path is too long.|"},
		{path(sandbox.ErrIsDirectory), "unsupported_type|a/b is a directory, not a file.|"},
		{path(sandbox.ErrNotDirectory), "unsupported_type|a/b is a file, not a directory.|"},
		{path(sandbox.ErrNotRegular), "unsupported_type|a/b is not a regular file.|"},
		{path(sandbox.ErrParentIsFile), "conflict|a is a file, so a/b cannot be created below it.|"},
		{path(sandbox.ErrNotReadable), "denied|File a/b is not readable.|"},
		{path(sandbox.ErrLeased), "denied|File a/b is not readable now: another program holds a lease on it. Try again later.|"},
		{path(sandbox.ErrNotWritable), "denied|File a/b is not writable.|"},
		{path(fs.ErrNotExist), "not_found|File a/b does not exist.|"},
		{path(sandbox.ErrLinkLoop), "not_found|File a/b does not exist.|"},
		{path(&sandbox.TooLargeError{Path: "a/b", Size: 9, Limit: 8}), "too_large|File a/b is too large: 9 bytes, at most 8 are allowed.|"},
		{&plan.TooLargeError{What: "list", Size: plan.MaxBytes + 1, Way: "Clear it."}, "too_large|The list would have 131073 bytes, more than the 131072 allowed.|Clear it."},
		{&process.StartError{Command: "x", What: "x", Err: process.ErrNoProgram}, `not_found|Command "x" was not found.|`},
		{&process.StartError{Command: "x", What: "x", Err: process.ErrNotExecutable}, `denied|Command "x" is not executable.|`},
		{&process.StartError{Command: "x", What: "x", Err: process.ErrArgsTooLong}, `too_large|Command "x" has more arguments and environment than the system takes.|`},
		{&process.StartError{Command: "x", What: "args[0]", Err: process.ErrHasNUL}, `bad_input|args[0] must not contain NUL.|`},
		{&process.StartError{Command: "x", What: "A=B", Err: process.ErrEnvName}, `bad_input|env has a variable named "A=B"; a name must not be empty or contain = or NUL.|`},
		{process.ErrEnding, "cancelled|The call was cancelled.|"},
		{context.Canceled, "cancelled|The call was cancelled.|"},
		{errors.New("disk full"), "internal|disk full.|"},
		{fmt.Errorf("while: %w", Errorf(fault.Conflict, "Wait.", "Busy %d.", 1)), "conflict|Busy 1.|Wait."},
	} {
		if _, text := call(t, env, nil, func(context.Context, *Env, nothing) (words, error) { return words{}, c.err }); text != c.want {
			t.Errorf("%v: got %s, want %s", c.err, text, c.want)
		}
	}
}

func TestStateIsPerSession(t *testing.T) {
	state := NewState(func() *int { return new(int) })
	other := NewState(func() *int { return new(int) })
	a, b := WithSession(t.Context(), NewSession("a", nil)), WithSession(t.Context(), NewSession("b", nil))
	*state.Of(a) = 1
	*other.Of(a) = 2
	if *state.Of(a) != 1 || *state.Of(b) != 0 || *other.Of(a) != 2 {
		t.Error("sessions or states share a value")
	}
}

func TestDefineNeedsWords(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a tool without a description must not be made")
		}
	}()
	Define(Info{Name: "t", Title: "T"}, func(context.Context, *Env, nothing) (words, error) { return words{}, nil })
}

// TestLogsHoldNoArguments: whatever an error quotes of a call, the log has its kind.
func TestLogsHoldNoArguments(t *testing.T) {
	const canary = "CANARY-d41d8"
	full := &fs.PathError{Op: "write", Path: canary, Err: syscall.ENOSPC}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"path":      {full, "*fs.PathError > no space left on device"},
		"wrapped":   {fmt.Errorf("writing %s: %w", canary, full), "*fmt.wrapError > *fs.PathError > no space left on device"},
		"joined":    {errors.Join(errors.New(canary), full), "*errors.joinError > no space left on device"},
		"text":      {errors.New(canary + " went wrong"), "*errors.errorString"},
		"command":   {&process.StartError{Command: canary, What: canary, Err: syscall.EIO}, "*process.StartError > input/output error"},
		"file":      {&sandbox.PathError{Path: canary, Err: errors.New(canary)}, "*sandbox.PathError > *errors.errorString"},
		"link":      {&os.LinkError{Op: "rename", Old: canary, New: canary, Err: syscall.EXDEV}, "*os.LinkError > invalid cross-device link"},
		"inside":    {Errorf(fault.Internal, "", "%s", canary), ""},
		"with more": {&Error{Code: fault.Internal, Msg: canary, Err: full}, "*tools.Error > *fs.PathError > no space left on device"},
	} {
		env, log := newEnv(t)
		call(t, env, map[string]any{}, func(context.Context, *Env, nothing) (words, error) { return words{}, c.err })
		if strings.Contains(log.String(), canary) || !strings.Contains(log.String(), c.want) {
			t.Errorf("%s: %s", name, log)
		}
	}
	for _, v := range []any{canary, errors.New(canary), full} {
		env, log := newEnv(t)
		call(t, env, map[string]any{}, func(context.Context, *Env, nothing) (words, error) { panic(v) })
		if head, _, _ := strings.Cut(log.String(), "stack="); strings.Contains(head, canary) || strings.Contains(log.String(), canary) || !strings.Contains(head, fmt.Sprintf("panic=%T", v)) {
			t.Errorf("panic: %s", log)
		}
	}
	env, log := newEnv(t)
	call(t, env, map[string]any{}, func(context.Context, *Env, nothing) (words, error) { return words{canary[len(log.String())+50:]}, nil })
	if !strings.Contains(log.String(), "slice bounds out of range") {
		t.Errorf("the runtime's own words are gone: %s", log)
	}
}
