package server

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/e2e/transcript"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
	"github.com/perstack-ai/perstack-base/server/internal/servertest"
)

// put writes files below dir; a name that ends in .sh becomes executable.
func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// hooked is a server with one trusted skill whose hooks are given as YAML.
func hooked(t *testing.T, hooks string, change func(*Config)) (dir string, call transcript.Caller) {
	t.Helper()
	dir = workspace(t)
	put(t, dir, map[string]string{
		"trusted/guard/SKILL.md": "---\nname: guard\ndescription: Guards.\nhooks:\n" + hooks + "---\nBody.\n",
		"a.txt":                  "alpha", "b.txt": "beta",
	})
	cfg := Config{Workspace: dir, Tools: []string{"perstack", "skills", "echo"}, Skills: []string{filepath.Join(dir, "trusted")}}
	if change != nil {
		change(&cfg)
	}
	return dir, inProcess(t, newServer(t, cfg))
}

func mustCall(t *testing.T, call transcript.Caller, tool, args string) *mcp.CallToolResult {
	t.Helper()
	r, err := call(tool, json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// texts are the text blocks of a result, "!" before those of an error.
func texts(r *mcp.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		all = append(all, c.(mcp.TextContent).Text)
	}
	joined := strings.Join(all, " | ")
	if r.IsError {
		return "!" + joined
	}
	return joined
}

const readA = `{"path":"a.txt"}`

// TestHooks: each case first shows what the call answers without the hook.
func TestHooks(t *testing.T) {
	const plainRead = `{"path":"a.txt","content":"alpha","from":0,"to":1}`
	for name, c := range map[string]struct{ hooks, want string }{
		"prompt before": {"  PreToolUse:\n    - matcher: Read\n      hooks: [{type: prompt, prompt: Mind it.}]\n",
			plainRead + " | [Skill Hook:pre:readTextFile]\nMind it."},
		"prompt after": {"  PostToolUse:\n    - hooks: [{type: prompt, prompt: Check.}]\n",
			plainRead + " | [Skill Hook:post:readTextFile]\nCheck."},
		"other tools are not watched": {"  PreToolUse:\n    - matcher: Bash\n      hooks: [{type: permission, decision: deny}]\n", plainRead},
		"deny":                        {"  PreToolUse:\n    - matcher: readTextFile\n      hooks: [{type: permission, decision: deny}]\n", `!{"error":"Tool readTextFile blocked by hook: Hook denied","code":"denied"}`},
		"deny with a reason":          {"  PreToolUse:\n    - hooks: [{type: permission, decision: deny, reason: Not now}]\n", `!{"error":"Tool readTextFile blocked by hook: Not now","code":"denied"}`},
		"ask without elicitation":     {"  PreToolUse:\n    - hooks: [{type: permission, decision: ask, reason: Sure}]\n", `!{"error":"Tool readTextFile requires permission: Sure","code":"denied"}`},
		"allow widens nothing":        {"  PreToolUse:\n    - hooks: [{type: permission, decision: allow}, {type: permission, decision: deny}]\n", plainRead},
		"exit code":                   {"  PreToolUse:\n    - hooks: [{type: command, command: 'echo no >&2; exit 4'}]\n", `!{"error":"Tool readTextFile blocked by hook: Hook exited with code 4: no","code":"denied"}`},
		"exit code after":             {"  PostToolUse:\n    - hooks: [{type: command, command: 'exit 4'}]\n", plainRead + " | [Skill Hook:post:readTextFile]\nHook exited with code 4"},
		"timeout":                     {"  PreToolUse:\n    - hooks: [{type: command, command: sleep 60, timeout: 1}]\n", `!{"error":"Tool readTextFile blocked by hook: Hook timed out after 1s","code":"denied"}`},
		"broken JSON":                 {"  PreToolUse:\n    - hooks: [{type: command, command: 'echo {'}]\n", `!{"error":"Tool readTextFile blocked by hook: Hook printed invalid JSON","code":"denied"}`},
		"updatedInput is no object":   {"  PreToolUse:\n    - hooks: [{type: command, command: \"echo '{\\\"updatedInput\\\":[]}'\"}]\n", `!{"error":"Tool readTextFile blocked by hook: Hook printed invalid JSON","code":"denied"}`},
		"text is ignored":             {"  PreToolUse:\n    - hooks: [{type: command, command: echo deny}]\n", plainRead},
		"block":                       {"  PreToolUse:\n    - hooks: [{type: command, command: \"echo '{\\\"decision\\\":\\\"block\\\"}'\"}]\n", `!{"error":"Tool readTextFile blocked by hook: blocked by skill hook","code":"denied"}`},
		"another input": {"  PreToolUse:\n    - hooks: [{type: command, command: \"echo '{\\\"updatedInput\\\":{\\\"path\\\":\\\"b.txt\\\"}}'\"}]\n",
			`{"path":"b.txt","content":"beta","from":0,"to":1}`},
		"another input is checked like any": {"  PreToolUse:\n    - hooks: [{type: command, command: \"echo '{\\\"updatedInput\\\":{\\\"path\\\":\\\"../x\\\"}}'\"}]\n",
			`!{"error":"../x is outside the workspace.","code":"outside_workspace"}`},
		"continue false": {"  PreToolUse:\n    - hooks: [{type: command, command: \"echo '{\\\"continue\\\":false,\\\"injected_context\\\":\\\"enough\\\"}'\"}, {type: permission, decision: deny}]\n",
			plainRead + " | [Skill Hook:pre:readTextFile]\nenough"},
		"blocked after": {"  PostToolUse:\n    - hooks: [{type: prompt, prompt: p}, {type: command, command: \"echo '{\\\"decision\\\":\\\"block\\\",\\\"reason\\\":\\\"secret\\\"}'\"}]\n",
			"!{\"error\":\"Tool readTextFile output blocked by hook: secret\",\"code\":\"denied\"} | [Skill Hook:post:readTextFile]\np"},
		"a mode heals nothing": {"  PreToolUse:\n    - hooks: [{type: command, command: \"echo '{\\\"permission_mode\\\":\\\"bypass\\\",\\\"permission_decision\\\":\\\"allow\\\"}'; exit 1\"}]\n",
			`!{"error":"Tool readTextFile blocked by hook: Hook exited with code 1","code":"denied"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, call := hooked(t, c.hooks, nil)
			if got := texts(mustCall(t, call, "readTextFile", readA)); got != plainRead {
				t.Fatalf("a hook of a skill that is not active watched the call: %s", got)
			}
			if r := mustCall(t, call, "skill_load", `{"skill":"guard"}`); r.IsError || len(r.Content) != 2 {
				t.Fatalf("the call that activates is not watched: %s", texts(r))
			}
			if got := texts(mustCall(t, call, "readTextFile", readA)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestHookIsTold holds what a command hook gets on standard input and in its environment.
func TestHookIsTold(t *testing.T) {
	hooks := "  PostToolUse:\n    - matcher: Read\n      hooks: [{type: command, command: 'cat > \"$PROJECT_DIR/told\"; env | sort > \"$PROJECT_DIR/env\"; pwd >> \"$PROJECT_DIR/env\"'}]\n"
	t.Setenv("SECRET_OF_SERVER", "x")
	t.Setenv("PLAIN_OF_SERVER", "x")
	dir, call := hooked(t, hooks, nil)
	mustCall(t, call, "activate_skill", `{"name":"guard","arguments":"x y"}`)
	mustCall(t, call, "readTextFile", readA)
	told, err := os.ReadFile(filepath.Join(dir, "told"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(told, &got); err != nil || strings.Count(string(told), "\n") != 1 {
		t.Fatalf("not one line of JSON: %q (%v)", told, err)
	}
	if got["hook_event_name"] != "PostToolUse" || got["tool_name"] != "readTextFile" || got["tool_alias"] != "Read" || got["cwd"] != dir ||
		got["skill"] != "guard" || got["tool_output"] != `{"path":"a.txt","content":"alpha","from":0,"to":1}` ||
		got["tool_input"].(map[string]any)["path"] != "a.txt" || !strings.HasPrefix(got["session_id"].(string), "session-") {
		t.Errorf("told %s", told)
	}
	env, _ := os.ReadFile(filepath.Join(dir, "env"))
	lines := strings.Split(strings.TrimSpace(string(env)), "\n")
	cwd := lines[len(lines)-1]
	for _, want := range []string{"HOOK_EVENT=PostToolUse\n", "CLAUDE_PROJECT_DIR=" + dir + "\n", "ARGUMENTS=x y\n", "CLAUDE_PLUGIN_ROOT=" + cwd + "\n", "SKILL_DIR=" + cwd + "\n"} {
		if !strings.Contains(string(env), want) {
			t.Errorf("the environment lacks %q:\n%s", want, env)
		}
	}
	if scratch.Below(cwd, dir) {
		t.Errorf("the hook of a skill that commands can change ran in the skill itself: %s", cwd)
	}
	if strings.Contains(string(env), "_OF_SERVER") {
		t.Errorf("the environment holds the server's:\n%s", env)
	}
}

// TestHooksOfWhom: discovered skills have none; those of a changed skill stay as
// they were; raw arguments that are no object are seen too.
func TestHooksOfWhom(t *testing.T) {
	deny := "  PreToolUse:\n    - hooks: [{type: permission, decision: deny}]\n"
	t.Run("discovered", func(t *testing.T) {
		_, call := hooked(t, deny, func(c *Config) {
			if err := os.Rename(filepath.Join(c.Workspace, "trusted"), filepath.Join(c.Workspace, "skills")); err != nil {
				t.Fatal(err)
			}
			c.Skills = nil
		})
		mustCall(t, call, "skill_load", `{"skill":"guard"}`)
		if r := mustCall(t, call, "readTextFile", readA); r.IsError {
			t.Error(texts(r))
		}
	})
	t.Run("changed", func(t *testing.T) {
		dir, call := hooked(t, deny, nil)
		mustCall(t, call, "skill_load", `{"skill":"guard"}`)
		if r := mustCall(t, call, "readTextFile", readA); !r.IsError {
			t.Fatal("not watched:", texts(r))
		}
		if r := mustCall(t, call, "skill_load", `{"skill":"guard"}`); !r.IsError {
			t.Error("skill tools are watched too:", texts(r))
		}
		put(t, dir, map[string]string{"trusted/guard/more.txt": "x"})
		got := texts(mustCall(t, call, "readTextFile", readA))
		if !strings.HasPrefix(got, "!") || !strings.Contains(got, "was changed or removed on disk") {
			t.Error("not watched any more, or not told:", got)
		}
		if got := texts(mustCall(t, call, "readTextFile", readA)); !strings.HasPrefix(got, "!") || strings.Contains(got, "was changed") {
			t.Error("not watched any more, or told again:", got)
		}
	})
	t.Run("read-only", func(t *testing.T) {
		touch := "  PreToolUse:\n    - hooks: [{type: command, command: 'touch \"$PROJECT_DIR/touched\"'}, {type: prompt, prompt: p}]\n"
		dir, call := hooked(t, touch, func(c *Config) { c.ReadOnly = true })
		mustCall(t, call, "skill_load", `{"skill":"guard"}`)
		if r := mustCall(t, call, "readTextFile", readA); len(r.Content) != 2 {
			t.Error("prompts need no command:", texts(r))
		}
		if _, err := os.Stat(filepath.Join(dir, "touched")); err == nil {
			t.Error("a command ran under --read-only")
		}
	})
	t.Run("bad arguments", func(t *testing.T) {
		_, call := hooked(t, deny, nil)
		mustCall(t, call, "skill_load", `{"skill":"guard"}`)
		if got := texts(mustCall(t, call, "readTextFile", `{"nonsense":1}`)); !strings.Contains(got, "blocked by hook") {
			t.Error(got)
		}
	})
}

// TestHooksHoldOut carries out what a command can do to a skill in the workspace
// whose hook stands in its way. The hook stays; the log says so once.
func TestHooksHoldOut(t *testing.T) {
	const hooks = "  PreToolUse:\n    - matcher: Write\n      hooks: [{type: command, command: 'bash \"$SKILL_DIR/check.sh\"'}]\n"
	const write = `{"path":"written","text":"x"}`
	for name, attack := range map[string]string{
		"appended":          "echo >> trusted/guard/SKILL.md",
		"hooks removed":     "printf -- '---\\nname: guard\\ndescription: d\\n---\\n' > trusted/guard/SKILL.md",
		"another skill":     "mkdir trusted/a; printf -- '---\\nname: guard\\ndescription: d\\n---\\n' > trusted/a/SKILL.md; rm -r trusted/guard",
		"emptied":           ": > trusted/guard/SKILL.md",
		"SKILL.md removed":  "rm trusted/guard/SKILL.md",
		"directory removed": "rm -r trusted/guard",
		"root removed":      "rm -r trusted",
		"unreadable":        "chmod 000 trusted/guard/SKILL.md trusted/guard/check.sh",
		"link":              "mv trusted/guard away; ln -s ../away trusted/guard; echo exit 0 > away/check.sh",
		"program changed":   "echo exit 0 > trusted/guard/check.sh",
		"program removed":   "rm trusted/guard/check.sh",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log logBuffer
			dir, call := hooked(t, hooks, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			put(t, dir, map[string]string{"trusted/guard/check.sh": "echo stopped >&2; exit 3"})
			if r := mustCall(t, call, "writeTextFile", write); r.IsError {
				t.Fatal("the call would not have succeeded without the hook:", texts(r))
			}
			mustCall(t, call, "skill_load", `{"skill":"guard"}`)
			run, _ := json.Marshal(map[string]any{"command": "bash", "args": []string{"-c", attack}, "env": map[string]string{}, "cwd": dir, "stdout": true, "stderr": true})
			if r := mustCall(t, call, "exec", string(run)); r.IsError {
				t.Fatal("the attack failed by itself:", texts(r))
			}
			seen := 1
			if name == "unreadable" && os.Geteuid() == 0 {
				seen = 0 // nothing is unreadable for root
			}
			if got := texts(mustCall(t, call, "writeTextFile", write)); !strings.Contains(got, "blocked by hook: Hook exited with code 3: stopped") || strings.Count(got, "was changed or removed on disk") != seen {
				t.Error("the hook is gone, or nothing is said:", got)
			}
			if got := texts(mustCall(t, call, "writeTextFile", write)); !strings.Contains(got, "blocked by hook: Hook exited with code 3: stopped") {
				t.Error("the hook is gone:", got)
			}
			if got := strings.Count(log.String(), "its hooks stay in force"); got != seen {
				t.Errorf("logged %d times:\n%s", got, log.String())
			}
		})
	}
}

// TestHooksOfASkillOfTheUser: commands cannot write the skill. Its hooks run in it
// and may write it, no other command may; when it is gone they block.
func TestHooksOfASkillOfTheUser(t *testing.T) {
	const hooks = "  PostToolUse:\n    - hooks: [{type: command, command: 'echo used >> \"${SKILL_DIR}/usage.log\"'}]\n" +
		"  PreToolUse:\n    - matcher: Write\n      hooks: [{type: command, command: 'bash \"$SKILL_DIR/check.sh\"'}]\n"
	own := workspace(t)
	put(t, own, map[string]string{"guard/SKILL.md": "---\nname: guard\ndescription: Guards.\nhooks:\n" + hooks + "---\nBody.\n", "guard/check.sh": "exit 0"})
	dir := workspace(t)
	put(t, dir, map[string]string{"a.txt": "alpha"})
	s := newServer(t, Config{Workspace: dir, Tools: []string{"perstack", "skills"}, Skills: []string{own}})
	call := inProcess(t, s)
	mustCall(t, call, "skill_load", `{"skill":"guard"}`)
	for range 2 {
		if got := texts(mustCall(t, call, "readTextFile", readA)); strings.Contains(got, "Hook") {
			t.Error("the log could not be written:", got)
		}
	}
	if log, err := os.ReadFile(filepath.Join(own, "guard/usage.log")); string(log) != "used\nused\n" {
		t.Errorf("log: %q (%v)", log, err)
	}
	const write = `{"path":"written","text":"x"}`
	if r := mustCall(t, call, "writeTextFile", write); r.IsError {
		t.Error(texts(r))
	}
	run, _ := json.Marshal(map[string]any{"command": "bash", "args": []string{"-c", "echo x >> " + own + "/guard/usage.log"}, "env": map[string]string{}, "cwd": "", "stdout": true, "stderr": true})
	if confined, _ := s.commands.Confined(); confined {
		if r := mustCall(t, call, "exec", string(run)); !r.IsError {
			t.Error("a command wrote the skill:", texts(r))
		}
	}
	if err := os.RemoveAll(filepath.Join(own, "guard")); err != nil {
		t.Fatal(err)
	}
	if got := texts(mustCall(t, call, "writeTextFile", write)); !strings.Contains(got, "blocked by hook: Hook could not run: the directory of the skill is not there") || !strings.Contains(got, "was changed or removed on disk") {
		t.Error("the hook is gone, or nothing is said:", got)
	}
}

// TestSafeShell lets the sample skill guard the session.
func TestSafeShell(t *testing.T) {
	testlevel.NotQuick(t, "starts Python again and again")
	dir := workspace(t)
	put(t, dir, map[string]string{"keep/x.txt": "x"})
	s := newServer(t, Config{Workspace: dir, Tools: []string{"perstack", "skills"}, Skills: []string{"../testdata/skills"}})
	call := inProcess(t, s)
	remove := `{"command":"rm","args":["-rf","keep/x.txt"],"env":{},"cwd":"","stdout":true,"stderr":true}`
	mustCall(t, call, "skill_load", `{"skill":"safe-shell"}`)
	if got := texts(mustCall(t, call, "exec", remove)); !strings.Contains(got, "Tool exec blocked by hook") {
		t.Error(got)
	}
	if got := texts(mustCall(t, call, "exec", `{"command":"echo","args":["hi"],"env":{},"cwd":"","stdout":true,"stderr":true}`)); got != `{"output":"hi\n"}` {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(dir, "keep/x.txt")); err != nil {
		t.Error("the guard let it pass:", err)
	}
	if log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl")); err != nil || !strings.Contains(string(log), `"exec"`) {
		t.Errorf("no audit: %s %v", log, err)
	}
	if unguarded := inProcess(t, s); mustCall(t, unguarded, "exec", remove).IsError {
		t.Error("a session without the skill is guarded")
	}
	if _, err := os.Stat(filepath.Join(dir, "keep/x.txt")); err == nil {
		t.Error("the unguarded call would not have succeeded either")
	}
}

// TestAskIsAnswered asks a legacy client over its connection.
func TestAskIsAnswered(t *testing.T) {
	dir := workspace(t)
	put(t, dir, map[string]string{
		"trusted/g/SKILL.md": "---\nname: g\ndescription: d\nhooks:\n  PreToolUse:\n    - matcher: Read\n      hooks: [{type: permission, decision: ask, reason: may I}]\n---\n",
		"a.txt":              "alpha\n",
	})
	for answer, want := range map[string]string{"accept": `alpha`, "decline": "requires permission: may I"} {
		s := newServer(t, Config{Workspace: dir, Tools: []string{"perstack", "skills"}, Skills: []string{filepath.Join(dir, "trusted")}})
		l := dialServer(t, s)
		l.Send(servertest.Greeting("1", "2025-11-25"))
		l.Next()
		l.Send(servertest.ToolCall("2", "skill_load", `{"skill":"g"}`))
		l.Next()
		l.Send(servertest.ToolCall("3", "readTextFile", readA))
		if ask := l.Next(); !strings.Contains(ask, `"elicitation/create"`) || !strings.Contains(ask, "may I") {
			t.Fatal(ask)
		}
		l.Send(`{"jsonrpc":"2.0","id":"srv-1","result":{"action":"` + answer + `","content":{}}}`)
		if got := l.Next(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", answer, got)
		}
	}
	s := newServer(t, Config{Workspace: dir, Tools: []string{"perstack", "skills"}, Skills: []string{filepath.Join(dir, "trusted")}})
	l := dialServer(t, s)
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	modern := func(id, tool, args, more string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `,` + more + meta + `}}`
	}
	l.Send(modern("1", "skill_load", `{"skill":"g"}`, ""))
	l.Next()
	l.Send(modern("2", "readTextFile", readA, ""))
	if got := l.Next(); !strings.Contains(got, `"input_required"`) || !strings.Contains(got, "hook-permission") {
		t.Fatal(got)
	}
	l.Send(modern("3", "readTextFile", readA, `"inputResponses":{"hook-permission":{"action":"accept","content":{}}},`))
	if got := l.Next(); !strings.Contains(got, "alpha") {
		t.Error(got)
	}
}

// A logBuffer is a log that many may write.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// dialServer is a live connection to a whole server.
func dialServer(t *testing.T, s *Server) *servertest.Line {
	t.Helper()
	return servertest.Dial(t, s.ServeStdio)
}
