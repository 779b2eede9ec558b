package terminal

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/tools"
)

// A client calls the tools of the profile in sessions of its own.
type client struct {
	t        *testing.T
	env      *tools.Env
	commands *process.Commands
	session  *tools.Session // nil: each call has one of its own
}

func newClient(t *testing.T) *client {
	t.Helper()
	files, err := files.Open(t.TempDir(), sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	commands, err := process.NewCommands(process.Config{Dir: files.Root()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = commands.Close(), files.Close() })
	return &client{t: t, env: &tools.Env{Files: files, Log: slog.New(slog.DiscardHandler)}, commands: commands}
}

// connected is a client with a session.
func connected(t *testing.T) *client {
	c := newClient(t)
	c.session = tools.NewSession("test", c.commands.NewShell())
	return c
}

// A reply has what answers and failures have.
type reply struct {
	answer
	Sessions    []listed `json:"sessions"`
	Error, Code string
}

func (c *client) call(tool string, args map[string]any) reply {
	c.t.Helper()
	return c.callIn(context.Background(), tool, args)
}

func (c *client) callIn(ctx context.Context, tool string, args map[string]any) (r reply) {
	c.t.Helper()
	session := c.session
	if session == nil {
		session = tools.NewSession("", c.commands.NewShell())
		session.OneCall = true
		defer session.Shell.Close()
	}
	var request mcp.CallToolRequest
	var given map[string]any // as JSON has it
	if err := json.Unmarshal(tools.JSON(args), &given); err != nil {
		c.t.Fatal(err)
	}
	request.Params.Name, request.Params.Arguments = tool, given
	result, err := Profile.Tool(tool).Bind(c.env, Profile).Handler(tools.WithSession(ctx, session), request)
	if err != nil {
		c.t.Fatal(err)
	}
	text := result.Content[0].(mcp.TextContent).Text
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	if strings.ContainsAny(text, "\x1b\x07") {
		c.t.Errorf("control characters reach the client: %q", text)
	}
	return r
}

type args = map[string]any

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("it did not come to this: ", what)
			return
		}
	}
}

// TestCancelledWait: a call that is given up ends nothing, and what it would have
// shown is shown to the next one.
func TestCancelledWait(t *testing.T) {
	c := connected(t)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		until(t, "it prints", func() bool {
			all := c.session.Shell.AllRunning()
			return len(all) == 1 && all[0].Bytes() > 0
		})
	}()
	if r := c.callIn(ctx, "exec_command", args{"cmd": "echo begun; sleep 86400"}); r.Code != "cancelled" {
		t.Errorf("%+v", r)
	}
	list := c.call("list_sessions", args{}).Sessions
	if len(list) != 1 || list[0].Status != running {
		t.Fatalf("%+v", list)
	}
	if r := c.call("write_stdin", args{"session_id": list[0].SessionID}); r.Output != "begun\n" || r.Status != running {
		t.Errorf("%+v", r)
	}
}

// TestNoSession: whoever has no session comes back by an id that owns the command
// and shows no other's; a command whose id got lost ends.
func TestNoSession(t *testing.T) {
	c := newClient(t)
	r := c.call("exec_command", args{"cmd": "echo begun; read x; echo got $x", "tty": true})
	if r.Status != running || len(r.SessionID) < 20 || !r.NeedsInput {
		t.Fatalf("%+v", r)
	}
	if list := c.call("list_sessions", args{}).Sessions; len(list) != 0 {
		t.Errorf("%+v", list)
	}
	if r := c.call("write_stdin", args{"session_id": "c1"}); r.Code != "not_found" || r.Hint != "" {
		t.Errorf("%+v", r)
	}
	if r := c.call("write_stdin", args{"session_id": r.SessionID, "chars": "it\n", "yield_time_ms": 60000}); r.Output != "it\ngot it\n" {
		t.Errorf("%+v", r)
	}
	if r := c.call("kill_session", args{"session_id": r.SessionID}); r.Status != exited || *r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	exists := func(name string) func() bool {
		return func() bool { _, err := fs.Stat(c.env.Files.Tree(), name); return err == nil }
	}
	go func() { defer cancel(); until(t, "it begins", exists("begun")) }()
	c.callIn(ctx, "exec_command", args{"cmd": "trap 'touch ended; exit' TERM; touch begun; while :; do sleep 0.01; done"})
	until(t, "it ends", exists("ended"))
}

// TestTwoWhoLook share what is new, and neither holds up the other or who writes.
func TestTwoWhoLook(t *testing.T) {
	c := connected(t)
	id := c.call("exec_command", args{"cmd": "while read x; do echo $x; done"}).SessionID
	replies := make(chan reply, 2)
	for range 2 {
		go func() { replies <- c.call("write_stdin", args{"session_id": id, "yield_time_ms": 60000}) }()
	}
	c.call("write_stdin", args{"session_id": id, "chars": "hello\n"})
	for range 2 {
		if r := <-replies; r.Status != running {
			t.Errorf("%+v", r)
		}
	}
	whole := c.call("write_stdin", args{"session_id": id, "offset": 0})
	if whole.Output != "hello\n" || whole.Offset != 0 || whole.NextOffset != 6 {
		t.Errorf("%+v", whole)
	}
}

// TestIncomplete: a character or a sequence of which the rest has not come is shown
// when it has.
func TestIncomplete(t *testing.T) {
	c := connected(t)
	r := c.call("exec_command", args{"cmd": `printf 'a\303'; read x; printf '\251\033[3'; read x; printf '1mb\033]0;t'; read x`})
	if r.Output != "a" || r.NextOffset != 1 {
		t.Errorf("%+v", r)
	}
	r = c.call("write_stdin", args{"session_id": r.SessionID, "chars": "\n", "yield_time_ms": 60000})
	if r.Output != "é" || r.NextOffset != 3 {
		t.Errorf("%+v", r)
	}
	r = c.call("write_stdin", args{"session_id": r.SessionID, "chars": "\n", "yield_time_ms": 60000})
	if r.Output != "b" || r.NextOffset != 9 {
		t.Errorf("%+v", r)
	}
	r = c.call("write_stdin", args{"session_id": r.SessionID, "eof": true, "yield_time_ms": 60000})
	if r.Output != "" || r.NextOffset != 14 || r.Status != exited {
		t.Errorf("%+v", r)
	}
}

// TestBudget: the middle goes, whether it is known or not any more.
func TestBudget(t *testing.T) {
	c := connected(t)
	r := c.call("exec_command", args{"cmd": "seq 300000", "yield_time_ms": 60000})
	if r.Status != exited || !r.Truncated || len(r.Output) > budget+100 || !strings.HasPrefix(r.Output, "1\n2\n") || !strings.HasSuffix(r.Output, "\n300000\n") {
		t.Errorf("%s %d bytes %.20q", r.Status, len(r.Output), r.Output)
	}
	for offset, want := range map[int]string{100_000: "300000\n", int(r.NextOffset) - 7: "300000\n", 65_530: "300000\n"} {
		a := c.call("write_stdin", args{"session_id": r.SessionID, "offset": offset, "max_output": 100})
		if !strings.HasSuffix(a.Output, want) || len(a.Output) > 200 || a.Offset != int64(offset) {
			t.Errorf("from %d: %+v", offset, a)
		}
	}
	if a := c.call("write_stdin", args{"session_id": r.SessionID, "offset": 0, "max_output": 0}); len(a.Output) > 100 || !a.Truncated {
		t.Errorf("%+v", a)
	}
}
