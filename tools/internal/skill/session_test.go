package skill

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// failsWith says what is wrong with an error that should be of a kind and contain a text.
func failsWith(t *testing.T, err error, code fault.Code, text string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != code || !strings.Contains(e.Msg+"\n"+e.Hint(), text) {
		t.Errorf("got %v, want %v with %q", err, code, text)
	}
}

// TestActivate: what activate_skill answers, once and again, with and without paths.
func TestActivate(t *testing.T) {
	r := newRig(t, map[string]string{
		"skills/s/SKILL.md": "---\nname: s\ndescription: d\n---\nHello ${1}.\n",
		"skills/p/SKILL.md": "---\nname: p\ndescription: d\npaths: '*.py'\n---\nPython.\n",
	})
	ctx := t.Context()
	text, err := r.Activate(ctx, "s", "world", "")
	if err != nil || !strings.Contains(text, "Hello world.") {
		t.Errorf("got %q %v", text, err)
	}
	if text, err = r.Activate(ctx, "s", "world", ""); err != nil || !strings.Contains(text, "already activated") {
		t.Errorf("again: %q %v", text, err)
	}
	if text, err = r.Activate(ctx, "s", "moon", ""); err != nil || !strings.Contains(text, "Hello moon.") {
		t.Errorf("with other arguments: %q %v", text, err)
	}
	_, err = r.Activate(ctx, "none", "", "")
	failsWith(t, err, fault.NotFound, "not found in catalog")
	_, err = r.Activate(ctx, "p", "", "")
	failsWith(t, err, fault.BadInput, "requires a matching context_path")
	_, err = r.Activate(ctx, "p", "", "a.go")
	failsWith(t, err, fault.BadInput, "expected one of: *.py")
	if text, err = r.Activate(ctx, "p", "", "a.py"); err != nil || !strings.Contains(text, "Python.") {
		t.Errorf("with its path: %q %v", text, err)
	}
	_, err = r.Load(ctx, "", nil, false, 1000)
	failsWith(t, err, fault.BadInput, "skill is required")
	_, err = r.Load(ctx, "q", nil, false, 1000)
	failsWith(t, err, fault.NotFound, "Known skills: p, s.")
	if names := r.engine.Names(); !slices.Equal(names, []string{"p", "s"}) {
		t.Errorf("names %q", names)
	}
}

// TestDocs: the docs of a skill are listed, selected, cleared, and sent along.
func TestDocs(t *testing.T) {
	r := newRig(t, map[string]string{
		"skills/s/SKILL.md": plainSkill, "skills/s/a.md": "Text A", "skills/s/d/b.txt": "Text B", "skills/s/c.py": "pass",
	})
	ctx := t.Context()
	docs, err := r.Docs(ctx, "s")
	if err != nil || !slices.Equal(docs, []string{"a.md", "d/b.txt"}) {
		t.Errorf("docs %q %v", docs, err)
	}
	for _, c := range []struct {
		names          []string
		all            bool
		mode           string
		selected, text string
		missing        int
	}{
		{[]string{"./a.md", "none.md"}, false, "replace", "a.md", "Text A", 1},
		{[]string{"d/b.txt"}, false, " ADD ", "a.md d/b.txt", "Text B", 0},
		{[]string{"d/b.txt"}, false, "add", "a.md d/b.txt", "", 0},
		{nil, false, "clear", "", "", 0},
		{nil, true, "replace", "a.md d/b.txt", "Text A", 0},
		{[]string{"a.md"}, false, "add", "a.md d/b.txt", "", 0},
	} {
		out, err := r.Select(ctx, "s", c.names, c.all, c.mode, 1<<16)
		if err != nil || strings.Join(out.SelectedDocs, " ") != c.selected || len(out.MissingDocs) != c.missing ||
			!strings.Contains(out.Text(), c.text) || c.text == "" && out.Text() != "" {
			t.Errorf("%q %s: %+v %v", c.names, c.mode, out, err)
		}
	}
	_, err = r.Select(ctx, "s", nil, false, "toggle", 100)
	failsWith(t, err, fault.BadInput, "mode must be one of add, replace, clear")
	_, err = r.Select(ctx, "s", []string{"x.md"}, false, "add", 100)
	failsWith(t, err, fault.NotFound, "skill_list_docs names the docs")
	text, err := r.Load(ctx, "s", []string{"a.md", "x.md"}, false, 1<<16)
	if err != nil || !strings.Contains(text, "Text A") || !strings.Contains(text, "Docs not found: x.md") {
		t.Errorf("loaded %q %v", text, err)
	}
}

// TestResource: files of an activated skill, and what is refused.
func TestResource(t *testing.T) {
	r := newRig(t, map[string]string{
		"skills/s/SKILL.md": plainSkill, "skills/s/a.md": "Text A", "skills/s/b.bin": "\xff\xfe\x00",
		"skills/r/SKILL.md": "---\nname: r\ndescription: d\nallowed-tools: Grep\n---\nBody.\n",
	})
	ctx := t.Context()
	_, err := r.Resource(ctx, "s", "a.md")
	failsWith(t, err, fault.Denied, "has not been activated")
	for _, name := range []string{"s", "r"} {
		if _, err := r.Open(ctx, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := r.Resource(ctx, "s", "a.md"); err != nil || !strings.Contains(got.Text, "Text A") || got.MIME != "text/markdown" {
		t.Errorf("got %+v %v", got, err)
	}
	if got, err := r.Resource(ctx, "s", "b.bin"); err != nil || len(got.Blob) != 3 || !strings.Contains(got.Text, `bytes="3"`) {
		t.Errorf("a blob: %+v %v", got, err)
	}
	_, err = r.Resource(ctx, "s", "../x")
	failsWith(t, err, fault.BadInput, "Path traversal")
	_, err = r.Resource(ctx, "s", "none.md")
	failsWith(t, err, fault.NotFound, "Resource file not found")
	_, err = r.Resource(ctx, "r", "SKILL.md")
	failsWith(t, err, fault.Denied, "does not permit tool 'read_skill_resource'")
	if err := os.Symlink("/etc/hosts", filepath.Join(r.dir, "skills/s/out.md")); err != nil {
		t.Fatal(err)
	}
	_, err = r.Resource(ctx, "s", "out.md")
	failsWith(t, err, fault.OutsideWorkspace, "escapes the skill directory")
}

// TestArtifacts: what a run saves is read by its URI and is an input of the next run.
func TestArtifacts(t *testing.T) {
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill, "skills/s/out/mine": "x"})
	out := r.mustRun(t, Run{Command: `printf 'a b' > "$OUTPUT_DIR/a b.txt"`, OutputFiles: []string{"out/*.txt"}, Save: true, Prefix: "kept/"})
	if len(out.ArtifactFiles) != 1 || !strings.Contains(strings.Join(out.Warnings, "\n"), "use $OUTPUT_DIR") {
		t.Fatalf("got %+v", out)
	}
	uri := out.ArtifactFiles[0].URI
	for _, uri := range []string{uri, ArtifactScheme + "kept/out/a b.txt"} {
		if content, mime, err := r.engine.Artifact(uri); err != nil || string(content) != "a b" || mime != "text/plain" {
			t.Errorf("%s: %q %s %v", uri, content, mime, err)
		}
	}
	if _, _, err := r.engine.Artifact("artifact://none"); !errors.Is(err, ErrNoArtifact) {
		t.Errorf("none: %v", err)
	}
	in := r.mustRun(t, Run{Command: `cat "$WORK_DIR/inputs/a b.txt"`, Inputs: []Input{{From: "artifact://kept/out/a b.txt"}}})
	if in.Stdout != "a b" {
		t.Errorf("the input is %q", in.Stdout)
	}
	_, err := r.run(t, Run{Command: "true", Inputs: []Input{{From: "artifact://none"}}})
	failsWith(t, err, fault.NotFound, "artifact not found")
}

// TestHooks: hooks of an activated skill stop, change and comment calls.
func TestHooks(t *testing.T) {
	hook := func(event, matcher, body string) string {
		return "  " + event + ":\n    - matcher: '" + matcher + "'\n      hooks:\n        - " + body + "\n"
	}
	skill := func(name, hooks string) string {
		return "---\nname: " + name + "\ndescription: d\nhooks:\n" + hooks + "---\nBody.\n"
	}
	r := newRig(t, map[string]string{
		"skills/a/SKILL.md": skill("a", hook("PreToolUse", "Bash(rm*)", "{type: permission, decision: deny, reason: no rm}")+
			"    - matcher: 'Bash(ask*)'\n      hooks:\n        - {type: permission, decision: ask, reason: sure}\n"+
			"    - matcher: Write\n      hooks:\n        - {type: prompt, prompt: Mind the tests.}\n"),
		"skills/b/SKILL.md": skill("b", hook("PreToolUse", "Read", `{type: command, command: 'cat >/dev/null; echo "{\"updatedInput\": {\"path\": \"b\"}, \"injected_context\": \"changed\", \"permission_mode\": \"plan\"}"'}`)+
			hook("PostToolUse", "Read", `{type: command, command: 'echo oops >&2; exit 3'}`)),
		"skills/c/SKILL.md": skill("c", hook("PreToolUse", "LS", `{type: command, command: 'echo "{"'}`)+
			"    - matcher: Grep\n      hooks:\n        - {type: command, command: 'echo {\\\"decision\\\": \\\"block\\\", \\\"reason\\\": \\\"not now\\\"}'}\n"+
			"    - matcher: TodoWrite\n      hooks:\n        - {type: command, command: sleep 30, timeout: 1}\n"),
	})
	ctx := t.Context()
	if r.Watch(ctx) != nil || (*Session)(nil).Watch(ctx) != nil {
		t.Error("hooks watch before a skill is activated")
	}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := r.Open(ctx, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	w := r.Watch(ctx)
	for _, c := range []struct {
		tool, input, blocked string
		ask                  bool
		message              string
	}{
		{"exec", "rm -r x", "no rm", false, ""},
		{"exec", "ask me", "", true, ""},
		{"write_file", "f", "", false, "Mind the tests."},
		{"list_dir", "d", "Hook printed invalid JSON", false, ""},
		{"grep_files", "x", "not now", false, ""},
		{"todo", "x", "Hook timed out after 1s", false, ""},
	} {
		key := "file_path"
		if Alias(c.tool) == "Bash" {
			key = "command"
		}
		v := w.Before(ctx, c.tool, map[string]any{key: c.input})
		if v.Blocked != (c.blocked != "") || c.blocked != "" && !strings.Contains(v.Reason, c.blocked) || v.Ask != c.ask ||
			!strings.Contains(strings.Join(v.Messages, "\n"), c.message) {
			t.Errorf("%s %s: %+v", c.tool, c.input, v)
		}
	}
	v := w.Before(ctx, "read_file", map[string]any{"file_path": "a"})
	if input, _ := v.Input.(map[string]any); !v.Changed || input["path"] != "b" || v.Mode != "plan" || !slices.Contains(v.Messages, "changed") {
		t.Errorf("a changed call: %+v", v)
	}
	if v = w.After(ctx, "read_file", nil, "text"); v.Blocked || !strings.Contains(strings.Join(v.Messages, "\n"), "Hook exited with code 3: oops") {
		t.Errorf("after the call: %+v", v)
	}
	r.write(t, map[string]string{"skills/a/new.md": "x"})
	if v = r.Watch(ctx).Before(ctx, "todo2", nil); !strings.Contains(strings.Join(v.Messages, "\n"), "was changed or removed on disk") {
		t.Errorf("a changed skill: %+v", v)
	}
	if v = r.Watch(ctx).Before(ctx, "todo2", nil); len(v.Messages) > 0 {
		t.Errorf("it is said again: %+v", v)
	}
	r.engine.ReadOnly = true
	if _, err := r.Open(ctx, "c", nil); err != nil {
		t.Fatal(err)
	}
	if v = r.Watch(ctx).Before(ctx, "list_dir", nil); v.Blocked {
		t.Errorf("a command hook ran although the server is read-only: %+v", v)
	}
}

// TestScripts: scripts of an activated skill, how they end and why they do not start.
func TestScripts(t *testing.T) {
	r := newRig(t, map[string]string{
		"skills/s/SKILL.md": plainSkill, "skills/s/ok.sh": "echo out $1; echo err >&2", "skills/s/fail.sh": "exit 4", "skills/s/slow.sh": "sleep 30", "skills/s/d/x": "",
	})
	ctx := t.Context()
	if _, err := r.Open(ctx, "s", nil); err != nil {
		t.Fatal(err)
	}
	run := func(script, args string, limit time.Duration) (*ScriptResult, error) {
		return r.RunScript(ctx, Script{Skill: "s", Script: script, Args: args, Timeout: limit, Budget: 1 << 16, Start: r.sh.Run})
	}
	if out, err := run("ok.sh", "'a b'", 30*time.Second); err != nil || out.Failure != "" || !strings.Contains(out.Output, "out a b") || !strings.Contains(out.Output, "<stderr>\nerr") {
		t.Errorf("got %+v %v", out, err)
	}
	if out, err := run("fail.sh", "", 30*time.Second); err != nil || out.Failure != "Script 'fail.sh' exited with code 4" {
		t.Errorf("got %+v %v", out, err)
	}
	if out, err := run("slow.sh", "", time.Second); err != nil || !strings.Contains(out.Failure, "timed out after 1s") {
		t.Errorf("got %+v %v", out, err)
	}
	_, err := run("ok.sh", "'", time.Second)
	failsWith(t, err, fault.BadInput, "unmatched quotes")
	_, err = run("../x.sh", "", time.Second)
	failsWith(t, err, fault.BadInput, "must be a relative path")
	_, err = run("none.sh", "", time.Second)
	failsWith(t, err, fault.NotFound, "Script not found")
	_, err = run("d", "", time.Second)
	failsWith(t, err, fault.UnsupportedType, "Cannot canonicalize")
}
