package server

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/tools"
)

// TestQuestionsComeBeforeTasks: what a hook asks is answered before there is a task,
// however soon calls become tasks.
func TestQuestionsComeBeforeTasks(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"trusted/g/SKILL.md": "---\nname: g\ndescription: d\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: [{type: permission, decision: ask, reason: may I}]\n---\n",
	})
	s := newServer(t, Config{Workspace: dir, Tools: []string{"perstack", "skills"}, Skills: []string{filepath.Join(dir, "trusted")}, TaskAfter: -1})
	l := dialServer(t, s)
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
		`{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	ask := func(id, method, params string) string {
		l.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `,` + meta + `}}`)
		return l.Next()
	}
	exec := `"name":"exec","arguments":{"command":"sh","args":["-c","sleep 0.3; echo done"],"env":{},"cwd":"","stdout":true,"stderr":true}`
	ask("1", "tools/call", `"name":"skill_load","arguments":{"skill":"g"}`)
	if got := ask("2", "tools/call", exec); !strings.Contains(got, `"resultType":"input_required"`) || !strings.Contains(got, "may I") || strings.Contains(got, "taskId") {
		t.Fatal(got)
	}
	if got := ask("3", "tools/call", exec+`,"inputResponses":{"hook-permission":{"action":"decline","content":{}}}`); !strings.Contains(got, "requires permission") || strings.Contains(got, "taskId") {
		t.Fatal(got)
	}
	got := ask("4", "tools/call", exec+`,"inputResponses":{"hook-permission":{"action":"accept","content":{}}}`)
	var begun struct {
		Result struct{ ResultType, TaskID string }
	}
	if json.Unmarshal([]byte(got), &begun) != nil || begun.Result.ResultType != "task" || strings.Contains(got, "inputRequests") {
		t.Fatal(got)
	}
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(got, `"status":"completed"`); {
		if got = ask("5", "tasks/get", `"taskId":"`+begun.Result.TaskID+`"`); time.Now().After(deadline) {
			t.Fatal(got)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !strings.Contains(got, `done\n`) {
		t.Error(got)
	}
	for params, want := range map[string]string{
		`"taskId":null`: "params.taskId must be a string", `"taskId":{}`: "params.taskId must be a string", `"x":1`: "params.taskId must be a string",
		`"taskId":"` + begun.Result.TaskID + `"`: "params.inputResponses must be an object", `"inputResponses":5,"taskId":"x"`: "params.inputResponses must be an object",
		`"inputResponses":{},"taskId":"` + strings.Repeat("x", 1<<20) + `"`: "is unknown or has expired",
	} {
		if got := ask("6", "tasks/update", params); !strings.Contains(got, want) || !strings.Contains(got, "-32602") || len(got) > 2000 {
			t.Errorf("%.200s: %.500s", params, got)
		}
	}
	l.End()
}

// BenchmarkTaskClient measures a call that is refused at once, of a client that takes
// tasks and of one that does not: the latter pays nothing for the former.
func BenchmarkTaskClient(b *testing.B) {
	s, err := New(Config{Workspace: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	session, end := s.sessions.Open("bench")
	defer end()
	for _, c := range []struct{ name, capabilities string }{{"waits", `{}`}, {"takes", `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`}} {
		message := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":` +
			`"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + c.capabilities + `}}}`)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m, _ := jsonrpc.Read(message)
				r := dispatch.NewRequest(&m)
				result, fault := s.dispatcher.Handle(tools.WithSession(b.Context(), session), &r, dispatch.NewSession("", nil))
				if _, sent := r.Encode(result, fault); sent != nil {
					b.Fatal(sent)
				}
			}
		})
	}
}
