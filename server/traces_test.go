package server

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/server/internal/servertest"
)

// TestSpansOfCalls: what calls leave in the file, however they end.
func TestSpansOfCalls(t *testing.T) {
	dir := workspace(t)
	put(t, dir, map[string]string{
		"a.txt": "alpha",
		"trusted/made/SKILL.md": "---\nname: made\ndescription: d\nhooks:\n  PreToolUse:\n    - matcher: Write\n" +
			"      hooks: [{type: command, command: 'exit 0'}]\n---\nHost: !`echo inline`.\n",
	})
	tool := func(name, args string) string { return servertest.ToolCall("7", name, args) }
	other := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":` + params + `}`
	}
	const ended = "command exit.code=0 timed_out=false cancelled=false output_bytes=0 tier=T refusals=0\n"
	for name, c := range map[string]struct{ message, want string }{
		"a file":                   {tool("readTextFile", `{"path":"a.txt"}`), "tools/call readTextFile tool.name=readTextFile\n"},
		"no such file":             {tool("readTextFile", `{"path":"b.txt"}`), "tools/call readTextFile tool.name=readTextFile error.code=not_found type=tool_error FAILED\n"},
		"malformed arguments":      {tool("readTextFile", `{"patch":"b.txt"}`), "tools/call readTextFile tool.name=readTextFile error.code=bad_input type=tool_error FAILED\n"},
		"a tool that is not there": {tool("secretTool", `{}`), "tools/call type=-32602 FAILED\n"},
		"no name":                  {other("tools/call", `{}`), "tools/call type=-32602 FAILED\n"},
		"a list":                   {other("tools/list", `{}`), "tools/list\n"},
		"ping":                     {other("ping", `{}`), "ping\n"},
		"a method of ours":         {other("skills/list", `{}`), "skills/list\n"},
		"a resource that is not":   {other("resources/read", `{"uri":"skill://none/SKILL.md"}`), "resources/read type=-32602 FAILED\n"},
		"a method that is not":     {other("secret/method", `{}`), "_OTHER type=-32601 FAILED\n"},
		"a version that is not": {other("secret/method", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`),
			"_OTHER type=-32602 FAILED\n"},
		"a command": {tool("exec", execArgs("echo done")), "tools/call exec tool.name=exec\n  " + strings.Replace(ended, "bytes=0", "bytes=5", 1)},
		"a command that fails": {tool("exec", execArgs("exit 3")), "tools/call exec tool.name=exec error.code=failed type=tool_error FAILED\n" +
			"  command exit.code=3 timed_out=false cancelled=false output_bytes=0 tier=T refusals=0 FAILED\n"},
		"a command by a signal": {tool("exec", execArgs("kill -9 $$")), "tools/call exec tool.name=exec error.code=failed type=tool_error FAILED\n" +
			"  command exit.code=137 signal=SIGKILL timed_out=false cancelled=false output_bytes=0 tier=T refusals=0 FAILED\n"},
		"a program that is not": {tool("exec", strings.Replace(execArgs(""), `"command":"sh"`, `"command":"no-such-program"`, 1)),
			"tools/call exec tool.name=exec error.code=not_found type=tool_error FAILED\n  command FAILED\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, read := traced(t, Config{Workspace: dir, Tools: []string{"perstack", "skills"}, Skills: []string{filepath.Join(dir, "trusted")}})
			l := dialServer(t, s)
			l.Send(c.message)
			l.Next()
			s.traces.tracer.Close()
			if got := tree(read()); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// TestSpansOfHooksAndInlineCommands: what a skill brings along runs in commands, too.
func TestSpansOfHooksAndInlineCommands(t *testing.T) {
	dir := workspace(t)
	skill := "---\nname: made\ndescription: d\nhooks:\n  PreToolUse:\n    - matcher: Read\n" +
		"      hooks: [{type: command, command: 'echo {}'}]\n---\nHost: !`echo inline`.\n"
	put(t, dir, map[string]string{"a.txt": "alpha", "trusted/made/SKILL.md": skill})
	s, read := traced(t, Config{Workspace: dir, Tools: []string{"perstack", "skills"}, Skills: []string{filepath.Join(dir, "trusted")}})
	l := dialServer(t, s)
	// The first call asks a login shell for its environment, where there is one.
	for _, message := range []string{
		servertest.ToolCall("1", "skill_load", `{"skill":"made"}`), servertest.ToolCall("2", "skill_load", `{"skill":"made"}`),
		servertest.ToolCall("3", "readTextFile", readA),
	} {
		l.Send(message)
		l.Next()
	}
	s.traces.tracer.Close()
	spans := read()
	last := func(id string) string {
		i := slices.IndexFunc(spans, func(s spanLine) bool { return s.get("jsonrpc.request.id") == id })
		return tree(slices.DeleteFunc(slices.Clone(spans), func(s spanLine) bool { return s.TraceID != spans[i].TraceID }))
	}
	want := "tools/call skill_load tool.name=skill_load\n" +
		"  command exit.code=0 timed_out=false cancelled=false output_bytes=7 tier=T refusals=0\n" +
		fmt.Sprintf("  workspace.stage.skill files=1 bytes=%d\n", len(skill))
	if got := last("2"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	want = "tools/call readTextFile tool.name=readTextFile\n  command exit.code=0 timed_out=false cancelled=false output_bytes=3 tier=T refusals=0\n"
	if got := last("3"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestSpansOfASkillsRun: the stretches of a run, in their order, with what they were about.
func TestSpansOfASkillsRun(t *testing.T) {
	dir := workspace(t)
	put(t, dir, map[string]string{
		"trusted/made/SKILL.md": "---\nname: made\ndescription: d\n---\n", "trusted/made/run.sh": "cat inputs/in.txt > out/result.txt; exit 5\n",
		"in.txt": "12345678",
	})
	s, read := traced(t, Config{Workspace: dir, Tools: []string{"skills"}, Skills: []string{filepath.Join(dir, "trusted")}})
	l := dialServer(t, s)
	run := `{"skill":"made","command":"sh run.sh","inputs":[{"from":"host://` + dir + `/in.txt"}],"output_files":["out/**"],"save_as_artifacts":true}`
	for deadline := time.Now().Add(servertest.Hang); ; {
		l.Send(servertest.ToolCall("1", "skill_run", run))
		l.Next()
		isCached := func(s spanLine) bool { return strings.Contains(s.String(), "cached=true") }
		if slices.ContainsFunc(read(), isCached) { // once the times of the source tell of a change
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is cached")
		}
		time.Sleep(20 * time.Millisecond)
	}
	l.End()
	s.traces.tracer.Close()
	spans := slices.DeleteFunc(read(), func(s spanLine) bool { return s.Name == "command" })
	const again = `tools/call skill_run tool.name=skill_run
  workspace.stage.skill cached=C files=2 bytes=N
  workspace.stage.inputs files=1 bytes=8
  workspace.run exit_code=5 timed_out=false FAILED
  workspace.collect files=1 bytes=8
  workspace.inline files=1 bytes=8
  workspace.save files=1 bytes=8
`
	first := strings.Replace(strings.Replace(again, "C", "false", 1), "  workspace.stage.skill", "  workspace.create\n  workspace.stage.skill", 1) + "  workspace.cleanup\n"
	size := 0
	for _, name := range []string{"SKILL.md", "run.sh"} {
		info, err := os.Stat(filepath.Join(dir, "trusted/made", name))
		if err != nil {
			t.Fatal(err)
		}
		size += int(info.Size())
	}
	last := strings.Replace(again, "C", "true", 1)
	sized := func(want string) string { return strings.ReplaceAll(want, "bytes=N", fmt.Sprintf("bytes=%d", size)) }
	if got := tree(spans); !strings.HasPrefix(got, sized(first)) || !strings.Contains(got, sized(last)) {
		t.Errorf("got\n%swant first\n%sand last\n%s", got, sized(first), sized(last))
	}
	for _, s := range read() {
		if s.Name == "command" && !slices.ContainsFunc(spans, func(r spanLine) bool { return r.SpanID == s.ParentSpanID && r.Name == "workspace.run" }) {
			t.Errorf("a command does not belong to a run: %v", s)
		}
	}
}

// TestSpanOfARequest has the attributes that all requests have, the parent that the
// client names, and what commands are told of it.
func TestSpanOfARequest(t *testing.T) {
	const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	s, read := traced(t, Config{Workspace: workspace(t)})
	t.Setenv("TRACEPARENT", "00-11111111111111111111111111111111-1111111111111111-01")
	l := dialServer(t, s)
	l.Send(servertest.Greeting(`"first"`, "2025-06-18"))
	l.Next()
	ask := func(meta string) (answer string) {
		args := execArgs("echo $TRACEPARENT $TRACESTATE")
		l.Send(`{"jsonrpc":"2.0","id":"a \"b\"","method":"tools/call","params":{"name":"exec","arguments":` + args + `,"_meta":` + meta + `}}`)
		return l.Next()
	}
	answer := ask(`{"traceparent":"00-` + traceID + `-` + spanID + `-01","tracestate":"a=1"}`)
	unsampled := ask(`{"traceparent":"00-` + traceID + `-` + spanID + `-00"}`)
	malformed := ask(`{"traceparent":"00-` + traceID + `","tracestate":"b=2"}`)
	ask(`{"traceparent":5}`)
	s.traces.tracer.Close()
	spans := read()
	if len(spans) != 7 { // initialize, and three calls with a command each
		t.Fatalf("%v", spans)
	}
	greeting, command, call, fresh := spans[0], spans[1], spans[2], spans[3]
	for key, want := range map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "exec", "network.transport": "pipe",
		"mcp.protocol.version": "2025-06-18", "jsonrpc.request.id": `a "b"`, "mcp.session.id": greeting.get("mcp.session.id"),
	} {
		if got := call.get(key); got != want || got == "" {
			t.Errorf("%s is %q; want %q", key, got, want)
		}
	}
	if greeting.Name != "initialize" || greeting.get("mcp.protocol.version") != "2025-06-18" || len(greeting.get("mcp.session.id")) != 32 || greeting.ParentSpanID != "" {
		t.Errorf("%+v", greeting)
	}
	if call.TraceID != traceID || call.ParentSpanID != spanID || call.TraceState != "a=1" || call.Kind != 2 ||
		command.TraceID != traceID || command.ParentSpanID != call.SpanID || command.Kind != 1 {
		t.Errorf("%+v %+v", call, command)
	}
	if !strings.Contains(answer, "00-"+traceID+"-"+command.SpanID+"-01 a=1") {
		t.Errorf("the command was told %s", answer)
	}
	if !regexp.MustCompile("00-"+traceID+"-[0-9a-f]{16}-00").MatchString(unsampled) || strings.Contains(unsampled, spanID) {
		t.Errorf("not sampled, the command was told %s", unsampled)
	}
	if fresh.TraceID == traceID || !strings.Contains(malformed, fresh.TraceID) || strings.Contains(malformed, "b=2") {
		t.Errorf("with a malformed parent: %s", malformed)
	}
}

// TestCommandsAreToldNothingElse: without spans commands have the variables that they
// had, and a call may set them in any case.
func TestCommandsAreToldNothingElse(t *testing.T) {
	t.Setenv("TRACEPARENT", "theirs")
	plain := inProcess(t, newServer(t, Config{Workspace: workspace(t)}))
	if got := texts(mustCall(t, plain, "exec", execArgs("echo $TRACEPARENT."))); !strings.Contains(got, "theirs.") {
		t.Error(got)
	}
	s, _ := traced(t, Config{Workspace: workspace(t)})
	l := dialServer(t, s)
	l.Send(servertest.ToolCall("1", "exec", strings.Replace(execArgs("echo $TRACEPARENT."), `"env":{}`, `"env":{"TRACEPARENT":"its own"}`, 1)))
	if got := l.Next(); !strings.Contains(got, "its own.") {
		t.Error(got)
	}
}

// TestSpansOfCancelledCalls: one that runs, and one that waits for its turn.
func TestSpansOfCancelledCalls(t *testing.T) {
	dir := workspace(t)
	s, read := traced(t, Config{Workspace: dir})
	l := dialServer(t, s)
	l.Send(servertest.ToolCall("1", "exec", execArgs("touch started; sleep 300")))
	for deadline := time.Now().Add(servertest.Hang); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the command does not start")
		}
	}
	l.Send(servertest.CancelOf("1"))
	call := awaitSpan(t, read, "tools/call exec")
	if call.get("error.type") != "tool_error" || call.get("perstack_base.error.code") != string(fault.Cancelled) || call.Status.Code != 2 {
		t.Errorf("%v", call)
	}
	command := awaitSpan(t, read, "command")
	if !strings.Contains(command.String(), "cancelled=true") || command.ParentSpanID != call.SpanID {
		t.Errorf("%v", command)
	}
	// What is told of one that never had its turn.
	m, _ := jsonrpc.Read([]byte(servertest.ToolCall("2", "todo", `{}`)))
	r := dispatch.NewRequest(&m)
	s.dispatcher.Refused(t.Context(), &r, dispatch.NewSession("", nil), nil)
	if waited := awaitSpan(t, read, "tools/call todo"); waited.get("error.type") != "cancelled" || waited.Status.Code != 2 {
		t.Errorf("%v", waited)
	}
}

// TestSpanOfATask: a call that becomes a task has a span that ends with its work.
func TestSpanOfATask(t *testing.T) {
	s, read := traced(t, Config{Workspace: workspace(t), TaskAfter: -1})
	l := dialServer(t, s)
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
		`{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	l.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":` + execArgs("read -r x < go; exit 3") + `,` + meta + `}}`)
	if got := l.Next(); !strings.Contains(got, `"resultType":"task"`) {
		t.Fatal(got)
	}
	call := awaitSpan(t, read, "tools/call exec") // the command fails: there is no file named go
	if call.get("error.type") != "tool_error" || call.get("mcp.protocol.version") != "2026-07-28" {
		t.Errorf("%v", call)
	}
	if command := awaitSpan(t, read, "command"); command.ParentSpanID != call.SpanID || command.EndTimeUnixNano > call.EndTimeUnixNano {
		t.Errorf("%v", command)
	}
}

// TestSpanOfARunningCommand: one that outlives its call belongs to it all the same.
func TestSpanOfARunningCommand(t *testing.T) {
	s, read := traced(t, Config{Workspace: workspace(t), Tools: []string{"terminal"}})
	l := dialServer(t, s)
	l.Send(servertest.ToolCall("1", "exec_command", `{"cmd":"read x; exit 4","yield_time_ms":250}`))
	if got := l.Next(); !strings.Contains(got, "c1") {
		t.Fatal(got)
	}
	call := awaitSpan(t, read, "tools/call exec_command")
	l.Send(servertest.ToolCall("2", "write_stdin", `{"session_id":"c1","chars":"x\n"}`))
	l.Next()
	command := awaitSpan(t, read, "command")
	if command.ParentSpanID != call.SpanID || command.get("process.exit.code") != "4" || command.EndTimeUnixNano < call.EndTimeUnixNano {
		t.Errorf("%v %v", call, command)
	}
}

// TestSpansHoldNoArguments calls every tool with a canary in every argument, and
// methods that have one in their name, and reads the file.
func TestSpansHoldNoArguments(t *testing.T) {
	for _, choice := range [][]string{{"perstack", "baseagent", "skills", "echo", "terminal"}, {"vski"}} {
		dir := workspace(t)
		put(t, dir, map[string]string{
			canary + "/f.txt": "x", "file" + canary: canary,
			"trusted/s/SKILL.md": "---\nname: s\ndescription: " + canary + "\n---\n" + canary + " !`echo " + canary + "`\n",
		})
		s, read := traced(t, Config{Workspace: dir, Tools: choice, Skills: []string{filepath.Join(dir, "trusted")}})
		l := dialServer(t, s)
		calls := 0
		send := func(method, params string) {
			l.Send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
			l.Next()
			calls++
		}
		for _, c := range s.lists.chosen() {
			schema := s.mcp.GetTool(c.tool.Name).Tool.RawInputSchema
			for _, text := range []string{canary, "../" + canary, "/" + canary, canary + "/f.txt", "s", "echo " + canary + " > " + canary + ".txt; exit 3"} {
				send("tools/call", `{"name":"`+c.tool.Name+`","arguments":`+filled(t, schema, text)+`,"_meta":{"`+canary+`":"`+canary+`","traceparent":"`+canary+`"}}`)
			}
		}
		send("tools/call", `{"name":"`+canary+`","arguments":{}}`)
		send(canary, `{}`)
		send("resources/read", `{"uri":"skill://`+canary+`"}`)
		send("prompts/get", `{"name":"`+canary+`"}`)
		send("skill_run", `{"skill":"s","command":"echo `+canary+`","env":{"X":"`+canary+`"}}`)
		l.End()
		s.traces.tracer.Close()
		data, err := os.ReadFile(filepath.Clean(s.traces.file.(*os.File).Name()))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, canary) || strings.Contains(line, dir) {
				t.Error(line)
			}
		}
		requests := slices.DeleteFunc(read(), func(s spanLine) bool { return s.Kind != 2 })
		if len(requests) != calls {
			t.Errorf("%d spans for %d requests", len(requests), calls)
		}
	}
}

// TestSpansOfServerCall: what the command line calls has a span, too.
func TestSpansOfServerCall(t *testing.T) {
	s, read := traced(t, Config{Workspace: workspace(t)})
	if _, err := s.Call(t.Context(), "exec", map[string]any{"command": "true", "args": []any{}, "env": map[string]any{}, "cwd": "", "stdout": true, "stderr": true}); err != nil {
		t.Fatal(err)
	}
	s.traces.tracer.Close()
	want := "tools/call exec tool.name=exec\n  command exit.code=0 timed_out=false cancelled=false output_bytes=0 tier=T refusals=0\n"
	if got := tree(read()); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestTraceFileIsRefused where commands could write it.
func TestTraceFileIsRefused(t *testing.T) {
	dir := workspace(t)
	for path, want := range map[string]string{filepath.Join(dir, "spans"): "commands can write there", filepath.Join(t.TempDir(), "none/spans"): "no such file"} {
		if s, err := New(Config{Workspace: dir, TraceFile: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
			if err == nil {
				s.Close()
			}
		}
	}
}
