package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// write makes a file and the directories above it.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func skillNamed(name string) string {
	return "---\nname: " + name + "\ndescription: The skill " + name + ".\n---\nBody.\n"
}

// TestSkillsOfASession loads, runs and reads a skill as a host does, and looks
// whether anything is left when the session has ended.
func TestSkillsOfASession(t *testing.T) {
	dir := workspace(t)
	if err := os.CopyFS(filepath.Join(dir, "skills"), os.DirFS("../testdata/skills")); err != nil {
		t.Fatal(err)
	}
	c := start(t, dir)
	if greeting := string(c.initialize()); !strings.Contains(greeting, "- release-notes: Write release notes") {
		t.Errorf("the instructions do not list the skills: %s", greeting)
	}
	load, err := c.call("skill_load", json.RawMessage(`{"skill":"release-notes","docs":["references/data.md"]}`))
	if err != nil || text(t, load) != "loaded: release-notes" {
		t.Fatalf("%v %v", load, err)
	}
	run, err := c.call("skill_run", json.RawMessage(`{"skill":"release-notes","command":"echo $WORKSPACE_DIR; sleep 300 & echo kept > out/x","output_files":["out/x"]}`))
	if err != nil || run.IsError {
		t.Fatalf("%v %v", run, err)
	}
	var result struct{ Stdout string }
	if err := json.Unmarshal([]byte(text(t, run)), &result); err != nil {
		t.Fatal(err)
	}
	tree := strings.TrimSpace(result.Stdout)
	if _, err := os.Stat(filepath.Join(tree, "out/x")); err != nil || strings.HasPrefix(tree, dir) {
		t.Errorf("the run workspace is %s: %v", tree, err)
	}
	var list struct {
		Skills []struct{ URI string }
	}
	if err := json.Unmarshal(c.request("skills/list", nil), &list); err != nil || len(list.Skills) != 4 {
		t.Errorf("%v %v", list, err)
	}
	var prompt struct {
		Messages []struct{ Content struct{ Text string } }
	}
	raw := c.request("prompts/get", map[string]any{"name": "python-check", "arguments": map[string]string{"arguments": "a.py"}})
	if err := json.Unmarshal(raw, &prompt); err != nil || len(prompt.Messages) != 1 || !strings.HasPrefix(prompt.Messages[0].Content.Text, "<skill_content") {
		t.Errorf("%s %v", raw, err)
	}
	c.in.Close()
	if code := c.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, c.stderr.String())
	}
	if _, err := os.Stat(tree); !os.IsNotExist(err) {
		t.Errorf("the run workspace outlives its session: %v", err)
	}
}

// TestSkillRunIsCancelled: no answer, and no process, is left of a cancelled run.
func TestSkillRunIsCancelled(t *testing.T) {
	dir := workspace(t)
	write(t, filepath.Join(dir, "skills/s/SKILL.md"), skillNamed("s"))
	c := start(t, dir)
	c.initialize()
	id, answer := c.send("tools/call", callParams("skill_run", json.RawMessage(`{"skill":"s","command":"cd $PROJECT_DIR; echo $$ > pid; sleep 300; true"}`)))
	running := pids(t, dir, "pid")
	c.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
	gone(t, running)
	c.request("ping", nil)
	select {
	case m := <-answer:
		t.Errorf("a cancelled call was answered: %s", m.Result)
	default:
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestSkillsCommandLine(t *testing.T) {
	dir := workspace(t)
	write(t, filepath.Join(dir, "skills/good/SKILL.md"), skillNamed("good"))
	write(t, filepath.Join(dir, "skills/bad/SKILL.md"), "---\nname: bad\n---\n")
	write(t, filepath.Join(dir, "mine/own/SKILL.md"), skillNamed("own"))
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"list", []string{"skills", "list"}, 0, "good", ""},
		{"list what was not loaded", []string{"skills", "list"}, 0, "not loaded: " + dir + "/skills/bad: ", ""},
		{"list trusted", []string{"skills", "list", "--json", "--skills", "mine", "--no-discover"}, 0, `{"skills":[{"name":"own","description":"The skill own.","dir":"` + dir + `/mine/own","root":"` + dir + `/mine","trust":"trusted","digest":"sha256:`, ""},
		{"validate", []string{"skills", "validate", "skills/good"}, 0, "Valid skill: skills/good\n", ""},
		{"validate a file", []string{"skills", "validate", "skills/good/SKILL.md"}, 0, "Valid skill: skills/good/SKILL.md\n", ""},
		{"not valid", []string{"skills", "validate", "skills/good", "skills/bad"}, 1, "Valid skill: skills/good\n", "Validation failed for skills/bad:\n  - Missing required field in frontmatter: description\n"},
		{"not valid, as JSON", []string{"skills", "validate", "--json", "skills/bad", "nowhere"}, 1, `{"dir":"nowhere","errors":["Path does not exist: nowhere"],"warnings":[]}`, ""},
		{"validate nothing", []string{"skills", "validate"}, 2, "", "name at least one skill directory"},
		{"digest", []string{"skills", "digest", "skills/good"}, 0, "  skills/good\n", ""},
		{"digest of nothing", []string{"skills", "digest", "nowhere"}, 1, "", "nowhere: "},
		{"tools with a skill", []string{"tools"}, 0, "skill_load", "skill is not loaded"},
		{"call a skill tool", []string{"call", "skill_list_docs", "skill=good"}, 0, "[]", ""},
		{"a missing --skills directory", []string{"call", "todo", "--skills", "gone", "--no-discover"}, 0, "todos", "the skills directory does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := cli(t, dir, nil, c.args...)
			if code != c.code || !strings.Contains(stdout, c.stdout) || (c.name != "tools with a skill" && !strings.Contains(stderr, c.stderr)) {
				t.Errorf("code %d\nstdout %s\nstderr %s", code, stdout, stderr)
			}
		})
	}
}

// TestCalculator builds the worked example and calls it over the wire.
func TestCalculator(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calculator")
	build := exec.Command("go", "build", "-o", path, "../examples/calculator")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(path)
	cmd.Dir = workspace(t)
	c := startCommand(t, cmd)
	if greeting := string(c.initialize()); !strings.Contains(greeting, "call add, subtract, multiply or divide") {
		t.Errorf("the instructions do not say when to calculate: %s", greeting)
	}
	for _, q := range []struct {
		tool, args, want string
		isError          bool
	}{
		{"multiply", `{"a":42,"b":8}`, "336", false}, {"divide", `{"a":1,"b":4}`, "0.25", false}, {"add", `{"a":0.1,"b":0.2}`, "0.30000000000000004", false},
		{"subtract", `{"a":1e21,"b":1}`, "1000000000000000000000", false}, {"divide", `{"a":1,"b":0}`, "Error: division by zero", true},
		{"multiply", `{"a":1e308,"b":10}`, "Error: the result is too large", true}, {"add", `{"a":1}`, `Error: Missing required argument "b".`, true},
	} {
		r, err := c.call(q.tool, json.RawMessage(q.args))
		if err != nil || text(t, r) != q.want || r.IsError != q.isError {
			t.Errorf("%s %s: %v %v, want %s", q.tool, q.args, r, err, q.want)
		}
	}
}

// BenchmarkSkills measures what skills cost, beside what the same costs without.
func BenchmarkSkills(b *testing.B) {
	many := workspace(b)
	for i := range 500 {
		write(b, filepath.Join(many, fmt.Sprintf("skills/s%03d/SKILL.md", i)), skillNamed(fmt.Sprintf("s%03d", i)))
	}
	for name, dir := range map[string]string{"start/skills=500": many, "start/skills=0": workspace(b)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c := start(b, dir)
				c.initialize()
				c.request("tools/list", nil)
				c.in.Close()
				<-c.exited
			}
		})
	}
	b.Run("list/skills=500", func(b *testing.B) {
		c := start(b, many)
		c.initialize()
		for b.Loop() {
			params, pages := map[string]any{}, 0
			for cursor := "x"; cursor != ""; pages++ {
				var page struct {
					Skills     []json.RawMessage
					NextCursor string
				}
				if err := json.Unmarshal(c.request("skills/list", params), &page); err != nil {
					b.Fatal(err)
				}
				cursor = page.NextCursor
				params["cursor"] = cursor
			}
			if pages != 10 {
				b.Fatalf("%d pages", pages)
			}
		}
	})
	large := workspace(b)
	write(b, filepath.Join(large, "skills/large/SKILL.md"), skillNamed("large"))
	write(b, filepath.Join(large, "skills/small/SKILL.md"), skillNamed("small"))
	for i := range 511 {
		write(b, filepath.Join(large, fmt.Sprintf("skills/large/references/%02d/%d.md", i%16, i)), strings.Repeat("x", 4096))
	}
	time.Sleep(50 * time.Millisecond)
	benchSkill(b, "run/skill=1 file", large, "skill_run", `{"skill":"small","command":"true"}`, nil)
	benchSkill(b, "run/skill=512 files", large, "skill_run", `{"skill":"large","command":"true"}`, nil)
	benchSkill(b, "run/floor=bash", large, "exec", `{"command":"bash","args":["-c","true"],"env":{},"cwd":"","stdout":true,"stderr":true}`, nil)
	touched := filepath.Join(large, "skills/large/touched")
	benchSkill(b, "run/skill=512 files, staged anew", large, "skill_run", `{"skill":"large","command":"true"}`, func(i int) {
		write(b, touched, fmt.Sprint(i))
	})
}

func benchSkill(b *testing.B, name, dir, tool, args string, before func(int)) {
	b.Run(name, func(b *testing.B) {
		c := start(b, dir)
		c.initialize()
		if _, err := c.call(tool, json.RawMessage(args)); err != nil {
			b.Fatal(err)
		}
		i := 0
		for b.Loop() {
			if before != nil {
				before(i)
				i++
			}
			if r, err := c.call(tool, json.RawMessage(args)); err != nil || r.IsError {
				b.Fatal(r, err)
			}
		}
	})
}

// TestSkillsConformance lets the official suite and the Inspector look at the extension.
func TestSkillsConformance(t *testing.T) {
	modules := nodeDir(t)
	dir := workspace(t)
	if err := os.CopyFS(filepath.Join(dir, "skills"), os.DirFS("../testdata/skills")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "skills/outer/SKILL.md"), skillNamed("outer"))
	write(t, filepath.Join(dir, "skills/outer/inner/SKILL.md"), skillNamed("inner"))
	write(t, filepath.Join(dir, "skills/outer/with blank/ü.txt"), "text")
	url := startSite(t, dir, "http").url
	for _, name := range []string{"sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"} {
		script := filepath.Join(modules, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
		if out, err := node(modules, script, "server", "--url", url, "--scenario", name, "-o", t.TempDir()).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	config := filepath.Join(t.TempDir(), "servers.json")
	write(t, config, `{"mcpServers":{"s":{"command":"`+binary+`","args":["serve","--workspace","`+dir+`"]}}}`)
	inspector := filepath.Join(modules, "node_modules/.bin/mcp-inspector")
	out, err := node(modules, inspector, "--cli", "--config", config, "--server", "s", "--method", "skills/list", "--verify", "--require-digests", "--format", "json").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Verified 6 skills") {
		t.Errorf("%v\n%s", err, out)
	}
}
