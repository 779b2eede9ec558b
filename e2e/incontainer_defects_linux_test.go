package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestInContainerDefects has a subtest for each defect of the executor whose place
// this one takes (trpc-agent-go, codeexecutor/container), by the number that they
// have among us. Each shows the opposite.
func TestInContainerDefects(t *testing.T) {
	e := needEngine(t, "docker")
	e.need(t, busyboxImage)
	for name, test := range map[string]func(t *testing.T, e *engine){
		"1 a timeout ends the command":                      timeoutEnds,
		"2 the duration is what passed":                     durationIsTrue,
		"3 limits are kept":                                 limitsAreKept,
		"4 neither python nor bash is needed":               nothingIsNeeded,
		"5 sessions are apart and nobody is root":           sessionsAreApart,
		"6 what cannot be prepared is said":                 preparationIsChecked,
		"7 names are names":                                 namesAreNames,
		"8 a killed server leaves nothing":                  killedLeavesNothing,
		"9 outputs of any name, and none from outside":      outputsOfAnyName,
		"10 images stay as they are":                        imagesStay,
		"11 interactive, and many first commands at a time": interactive,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// A ranSkill is an answer of skill_run.
type ranSkill struct {
	Stdout, Stderr string
	ExitCode       int  `json:"exit_code"`
	TimedOut       bool `json:"timed_out"`
	DurationMS     int  `json:"duration_ms"`
	OutputFiles    []struct {
		Name, Content string
		Truncated     bool
	} `json:"output_files"`
	Warnings []string
}

// skillRun runs a command of a skill; args are added to the call.
func (c *client) skillRun(skill, command string, args map[string]any) (r ranSkill) {
	c.t.Helper()
	all := map[string]any{"skill": skill, "command": command}
	for key, value := range args {
		all[key] = value
	}
	raw, _ := json.Marshal(all)
	result, err := c.call("skill_run", raw)
	if err != nil {
		c.t.Fatal(err)
	}
	if result.IsError || json.Unmarshal([]byte(text(c.t, result)), &r) != nil {
		c.t.Fatalf("skill_run %s answered %s", raw, text(c.t, result))
	}
	return r
}

// withSkill is a workspace with one skill.
func withSkill(t *testing.T, name string) string {
	t.Helper()
	dir := workspace(t)
	write(t, filepath.Join(dir, "skills", name, "SKILL.md"), skillNamed(name))
	return dir
}

func timeoutEnds(t *testing.T, e *engine) {
	dir := withSkill(t, "s")
	c := e.start(t, dir, busyboxImage)
	r := c.skillRun("s", "cd $PROJECT_DIR; "+clinging, map[string]any{"timeout": 2})
	if !r.TimedOut {
		t.Errorf("the run answered %+v", r)
	}
	told(t, dir, clingers...)
	deserted(t, dir)
}

func durationIsTrue(t *testing.T, e *engine) {
	c := e.start(t, withSkill(t, "s"), busyboxImage)
	c.said("true")
	const pause, limit = 300, 600
	begun := time.Now()
	r := c.skillRun("s", fmt.Sprintf("sleep 0.%d", pause/100), map[string]any{"timeout": limit})
	if passed := int(time.Since(begun).Milliseconds()); r.DurationMS < pause || r.DurationMS > passed {
		t.Errorf("the run took %d ms by itself, it slept for %d and %d passed here", r.DurationMS, pause, passed)
	}
}

// moreThanAsked is how many processes more than commands may have doctor says that a
// container may, for what runs them.
func moreThanAsked(t *testing.T, e *engine, limits []string) int {
	t.Helper()
	out, complaint, code := cli(t, workspace(t), nil, append([]string{"doctor", "--container", busyboxImage, "--container-engine", e.path}, limits...)...)
	found := regexp.MustCompile(`--max-processes 60 is kept exactly.* may have (\d+) more`).FindStringSubmatch(out)
	if code != 0 || found == nil {
		t.Fatalf("doctor: exit code %d, %s %s", code, out, complaint)
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

func limitsAreKept(t *testing.T, e *engine) {
	limits := []string{"--max-memory", "64M", "--max-processes", "60", "--max-cpus", "1"}
	dir := workspace(t)
	c := e.start(t, dir, busyboxImage, limits...)
	c.said("true")
	id := e.one(t, dir)
	for format, want := range map[string]string{
		"{{.HostConfig.Memory}}": fmt.Sprint(64 << 20), "{{.HostConfig.PidsLimit}}": fmt.Sprint(60 + moreThanAsked(t, e, limits)), "{{.HostConfig.NanoCpus}}": fmt.Sprint(int(1e9)),
	} {
		if got := e.inspect(t, id, format); got != want {
			t.Errorf("%s is %s, want %s", format, got, want)
		}
	}
	for _, hungry := range []struct{ line, flag string }{
		{"for i in $(seq 200); do sleep 20 & done; wait", "--max-processes 60"},
		{"head -c 300000000 /dev/zero | tail -c 299999999 > /dev/null", "--max-memory 64M"},
	} {
		result, err := c.call("exec", run(hungry.line))
		if err != nil || !result.IsError || !strings.Contains(text(t, result), hungry.flag) {
			t.Errorf("%s answered %s (%v)", hungry.line, text(t, result), err)
		}
	}
	if got := c.said("echo on"); got != "on" {
		t.Errorf("the next command prints %q", got)
	}
}

func nothingIsNeeded(t *testing.T, e *engine) {
	c := e.start(t, withSkill(t, "s"), busyboxImage)
	if got := c.said("which bash python3 || echo neither"); got != "neither" {
		t.Fatalf("the image has %s", got)
	}
	if r := c.skillRun("s", "echo ran", nil); r.Stdout != "ran\n" {
		t.Errorf("the run answered %+v", r)
	}
}

func sessionsAreApart(t *testing.T, e *engine) {
	dir := workspace(t)
	s := e.site(t, dir, busyboxImage)
	a, b := visit(s, false), visit(s, false)
	a.initialize()
	b.initialize()
	const look = "ls /tmp | grep -c '^mine$'; ps | grep -c 'sleep [3]00'; true"
	a.said("echo mine > /tmp/mine; sleep 300 > /dev/null 2>&1 &")
	if own, others := a.said(look), b.said(look); own != "1\n1" || others != "0\n0" {
		t.Errorf("a session finds %q of its own and %q of another's", own, others)
	}
	for _, v := range []*visitor{a, b} {
		for what, line := range map[string]string{
			"capabilities": "grep -E '^Cap(Eff|Prm|Bnd):' /proc/self/status | grep -v 0000000000000000",
			"new rights":   "grep NoNewPrivs /proc/self/status | grep -v 1$",
			"root":         "echo x 2>/dev/null > /etc/x && echo written",
		} {
			if got := v.said(line + "; true"); got != "" {
				t.Errorf("%s: %s", what, got)
			}
		}
	}
	if ids := e.containers(t, dir); len(ids) != 2 {
		t.Errorf("two sessions have the containers %v", ids)
	}
}

func preparationIsChecked(t *testing.T, e *engine) {
	dir := withSkill(t, "s")
	c := e.start(t, dir, busyboxImage)
	for args, want := range map[string]string{
		`{"skill":"s","command":"echo ran > $PROJECT_DIR/ran","inputs":[{"from":"workspace://work/missing"}]}`:       "missing",
		`{"skill":"s","command":"echo ran > $PROJECT_DIR/ran","inputs":[{"from":"host:///etc/passwd"}]}`:             "outside",
		`{"skill":"s","command":"echo ran > $PROJECT_DIR/ran","cwd":"skills/none"}`:                                  "none",
		`{"skill":"s","command":"echo ran > $PROJECT_DIR/ran","inputs":[{"from":"skill://s/SKILL.md","to":"../x"}]}`: "x",
	} {
		result, err := c.call("skill_run", json.RawMessage(args))
		if err != nil || !result.IsError || !strings.Contains(text(t, result), want) {
			t.Errorf("%s answered %s (%v)", args, text(t, result), err)
		}
	}
	if exists(filepath.Join(dir, "ran")) {
		t.Error("a command ran without what it was to find")
	}
}

func namesAreNames(t *testing.T, e *engine) {
	const odd = `it's "$(touch pwned)" & ; a,b:c = ` + "`id`"
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, odd)
	write(t, filepath.Join(dir, "skills", odd, "SKILL.md"), "---\nname: '"+strings.ReplaceAll(odd, "'", "''")+"'\ndescription: Odd.\n---\nBody.\n")
	write(t, filepath.Join(dir, odd), "content\n")
	write(t, filepath.Join(dir, "skills", odd, odd+".sh"), "echo a script\n")
	c := e.start(t, dir, busyboxImage)
	if got := c.said("pwd; cat it*; echo made > made"); got != dir+"\ncontent" {
		t.Errorf("in the workspace %q commands print %q", dir, got)
	}
	if !exists(filepath.Join(dir, "made")) {
		t.Error("what a command made is somewhere else")
	}
	r := c.skillRun(odd, `cat inputs/* && sh ./*.sh && ls; echo x > "out/$SKILL_NAME"`, map[string]any{
		"inputs": []map[string]string{{"from": "host://" + filepath.Join(dir, odd)}}, "output_files": []string{"out/*"},
	})
	if !strings.HasPrefix(r.Stdout, "content\na script\n") || len(r.OutputFiles) != 1 || r.OutputFiles[0].Content != "x\n" {
		t.Errorf("the skill %s answered %+v", odd, r)
	}
	if found, err := filepath.Glob(filepath.Join(parent, "*", "pwned")); err != nil || len(found) > 0 || exists("pwned") {
		t.Errorf("a name was run: %v (%v)", found, err)
	}
}

func killedLeavesNothing(t *testing.T, e *engine) {
	dir := workspace(t)
	c := e.start(t, dir, busyboxImage)
	c.send("tools/call", callParams("exec", run(clinging, "timeout=0")))
	told(t, dir, clingers...)
	id := e.one(t, dir)
	c.cmd.Process.Kill()
	c.end()
	e.none(t, dir)
	deserted(t, dir)
	if out, err := e.run("ps", "-aq", "--no-trunc"); err != nil || strings.Contains(out, id) {
		t.Errorf("the container is still known: %s (%v)", out, err)
	}
}

func outputsOfAnyName(t *testing.T, e *engine) {
	dir := withSkill(t, "s")
	c := e.start(t, dir, busyboxImage)
	r := c.skillRun("s", `cd out; echo 1 > 'a b.txt'; echo 2 > "$(printf 'new\nline.txt')"; echo 3 > '[x]*?.txt'; ln -s /etc/passwd leak.txt; ln -s $PROJECT_DIR/skills far.txt; head -c 5000000 /dev/zero | tr '\0' z > z.txt; mkfifo pipe.txt`,
		map[string]any{"output_files": []string{"out/*.txt", "out/new\nline.txt"}})
	found := map[string]string{}
	for _, f := range r.OutputFiles {
		found[f.Name] = f.Content
		if f.Name == "out/z.txt" && !f.Truncated {
			t.Error("a big output is not said to be cut")
		}
	}
	for name, want := range map[string]string{"out/a b.txt": "1\n", "out/new\nline.txt": "2\n", "out/[x]*?.txt": "3\n"} {
		if found[name] != want {
			t.Errorf("%q holds %q, want %q", name, found[name], want)
		}
	}
	for _, name := range []string{"out/leak.txt", "out/far.txt", "out/pipe.txt"} {
		if content, ok := found[name]; ok {
			t.Errorf("%s was collected: %q", name, content)
		}
	}
	if warnings := strings.Join(r.Warnings, "\n"); !strings.Contains(warnings, "leak.txt") || !strings.Contains(warnings, "pipe.txt") {
		t.Errorf("what was left out is not said: %s", warnings)
	}
}

func imagesStay(t *testing.T, e *engine) {
	ids := func() string {
		id, err := e.run("image", "inspect", "--format", "{{.Id}} {{.RepoTags}}", busyboxImage)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	before := ids()
	c := e.start(t, workspace(t), busyboxImage)
	c.said("true")
	if after := ids(); after != before {
		t.Errorf("the image was %s and is %s", before, after)
	}
}

func interactive(t *testing.T, e *engine) {
	dir := workspace(t)
	c := e.start(t, dir, busyboxImage, "--tools", "terminal,perstack")
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			if result, err := c.call("exec", run(fmt.Sprintf("echo %d", i))); err != nil || text(t, result) != fmt.Sprintf(`{"output":"%d\n"}`, i) {
				t.Errorf("command %d answered %v (%v)", i, result, err)
			}
		})
	}
	all.Wait()
	e.one(t, dir) // and not ten
	call := func(tool, args, want string) {
		t.Helper()
		if result, err := c.call(tool, json.RawMessage(args)); err != nil || !strings.Contains(text(t, result), want) {
			t.Errorf("%s %s answered %s (%v), want %s", tool, args, text(t, result), err, want)
		}
	}
	call("exec_command", `{"cmd":"tty > /dev/null && stty size; echo name?; read name; echo hello $name; exit 4","tty":true,"rows":31,"cols":101,"yield_time_ms":30000}`, `31 101\nname?`)
	call("write_stdin", `{"session_id":"c1","chars":"you\n","yield_time_ms":30000}`, `"exit_code":4`)
	call("exec_command", `{"cmd":"echo $$ > shell; read forever","tty":true,"yield_time_ms":250}`, `"status":"running"`)
	told(t, dir, "shell")
	call("kill_session", `{"session_id":"c2"}`, "")
	deserted(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "shell")); err != nil {
		t.Error(err)
	}
}
