package skill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
	"github.com/perstack-ai/perstack-base/skillrepo"
)

// A rig is an engine over a workspace whose skills are in skills/, with one session.
type rig struct {
	*Session
	dir string
	sh  *process.Shell
}

func newRig(t testing.TB, files map[string]string) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return newRigIn(t, dir, files)
}

func newRigIn(t testing.TB, dir string, contents map[string]string) *rig {
	t.Helper()
	if b, ok := t.(*testing.B); ok {
		b.Setenv("XDG_CACHE_HOME", b.TempDir())
	} else {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
	}
	r := &rig{dir: dir}
	r.write(t, contents)
	fsys, err := files.Open(dir, sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	commands, err := process.NewCommands(process.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := skillrepo.Open(t.Context(), []skillrepo.Root{{FS: fsys.Tree(), Path: "skills", Dir: dir + "/skills", Trusted: true}}, skillrepo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{Repo: repo, Files: fsys, Workdirs: scratch.NewWorkdirs(dir), Log: slog.New(slog.DiscardHandler), HostEnv: commands.Env}
	r.sh = commands.NewShell()
	r.Session = e.NewSession(r.sh, false)
	t.Cleanup(func() {
		commands.Close()
		r.Close()
		fsys.Close()
	})
	return r
}

func (r *rig) write(t testing.TB, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *rig) run(t testing.TB, run Run) (*RunResult, error) {
	t.Helper()
	run.Skill, run.Start = "s", r.sh.Run
	if run.Budget == 0 {
		run.Budget = 1 << 16
	}
	if run.Timeout == 0 {
		run.Timeout = 20 * time.Second
	}
	return r.Run(t.Context(), run)
}

func (r *rig) mustRun(t testing.TB, run Run) *RunResult {
	t.Helper()
	out, err := r.run(t, run)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const plainSkill = "---\nname: s\ndescription: d\n---\nBody.\n"

// TestStagingFollows: what a run did to the copy is gone in the next, what was
// done to the source is there, and a copy that is still right stays.
func TestStagingFollows(t *testing.T) {
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill, "skills/s/d/f.txt": "one"})
	look := "cat d/f.txt; find . -type f | sort | tr '\\n' ' '"
	step := func(want string) {
		t.Helper()
		if got := r.mustRun(t, Run{Command: look}).Stdout; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	step("one./SKILL.md ./d/f.txt ")
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(filepath.Join(r.dir, "skills/s/d/f.txt"), old, old); err != nil {
		t.Fatal(err)
	}
	time.Sleep(30 * time.Millisecond) // so that signatures can vouch for the source
	step("one./SKILL.md ./d/f.txt ")
	before := r.work.staged["s"]
	step("one./SKILL.md ./d/f.txt ")
	if r.work.staged["s"] != before {
		t.Error("an unchanged skill was copied again")
	}
	r.mustRun(t, Run{Command: "chmod u+w d/f.txt; echo hacked > d/f.txt; touch new"})
	step("one./SKILL.md ./d/f.txt ")
	r.write(t, map[string]string{"skills/s/d/f.txt": "two", "skills/s/g": ""})
	step("two./SKILL.md ./d/f.txt ./g ")
	if err := os.RemoveAll(filepath.Join(r.dir, "skills/s/d")); err != nil {
		t.Fatal(err)
	}
	if got := r.mustRun(t, Run{Command: "find . -type f | sort | tr '\\n' ' '"}).Stdout; got != "./SKILL.md ./g " {
		t.Errorf("a removed file is still there: %q", got)
	}
	if info, err := os.Stat(filepath.Join(r.work.abs("skills/s"), "g")); err != nil || info.Mode().Perm()&0o222 != 0 || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("mode of the copy: %v %v", info.Mode(), err)
	}
}

// TestHostileRunWorkspace: what commands leave behind leads nobody outside.
func TestHostileRunWorkspace(t *testing.T) {
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill, "secret": "hidden", "in.txt": "input"})
	r.mustRun(t, Run{Command: "ln -s " + r.dir + "/secret out/l; ln -s " + r.dir + " work/up; ln -s loop out/loop; mkfifo work/fifo; rmdir work/inputs; ln -s " + r.dir + " work/inputs"})
	out := r.mustRun(t, Run{Command: "true", OutputFiles: []string{"out/*", "work/up/*", "work/**"}})
	for _, f := range out.OutputFiles {
		t.Errorf("collected %+v", f)
	}
	if len(out.Warnings) < 2 {
		t.Errorf("warnings: %q", out.Warnings)
	}
	for _, to := range []string{"work/up/x", "inputs/x", "", "work/up/"} {
		_, err := r.run(t, Run{Command: "true", Inputs: []Input{{From: "host://" + r.dir + "/in.txt", To: to}}})
		if fault.Of(err) != fault.OutsideWorkspace {
			t.Errorf("to %q: %v", to, err)
		}
	}
	for _, from := range []string{"workspace://out/l", "workspace://work/up/secret"} {
		if _, err := r.run(t, Run{Command: "true", Inputs: []Input{{From: from}}}); fault.Of(err) != fault.OutsideWorkspace {
			t.Errorf("%s: %v", from, err)
		}
	}
	for _, cwd := range []string{"work/up", "$WORK_DIR/up", "/work/up"} {
		if _, err := r.run(t, Run{Command: "pwd", Cwd: cwd}); fault.Of(err) != fault.OutsideWorkspace {
			t.Errorf("cwd %s: %v", cwd, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "x")); left != nil {
		t.Error("written outside")
	}
	if text, err := os.ReadFile(filepath.Join(r.work.abs("out"), "l")); err != nil || string(text) != "hidden" {
		t.Error("the unguarded read would not have succeeded either:", err)
	}
}

func TestCwd(t *testing.T) {
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill, "skills/s/sub/f": "", "src/f": ""})
	r.mustRun(t, Run{Command: "true"})
	top := r.work.dir.Root()
	for cwd, want := range map[string]string{
		"": top + "/skills/s", ".": top + "/skills/s", "sub": top + "/skills/s/sub", `.\sub`: top + "/skills/s/sub", "out": top + "/out", "out/new": top + "/out/new",
		"inputs": top + "/work/inputs", "$WORK_DIR": top + "/work", "${OUTPUT_DIR}/a/b": top + "/out/a/b", "$SKILL_DIR/sub": top + "/skills/s/sub",
		"$WORKSPACE_DIR": top, "$PROJECT_DIR": r.dir, "$PROJECT_DIR/src": r.dir + "/src", r.dir + "/src": r.dir + "/src", top + "/work": top + "/work",
		"/work/x": top + "/work/x", "/skills/s": top + "/skills/s", "/": top,
	} {
		if out, err := r.run(t, Run{Command: "pwd -P", Cwd: cwd}); err != nil || strings.TrimSpace(out.Stdout) != want {
			t.Errorf("%q: %v %v, want %s", cwd, out, err, want)
		}
	}
	for cwd, code := range map[string]fault.Code{
		"..": fault.OutsideWorkspace, "../..": fault.OutsideWorkspace, "/etc": fault.OutsideWorkspace, "$WORK_DIR/../skills": fault.OutsideWorkspace, "$PROJECT_DIR/..": fault.OutsideWorkspace,
		"none": fault.NotFound, "$PROJECT_DIR/none": fault.NotFound, "/runs/none": fault.NotFound, "SKILL.md": fault.UnsupportedType, "$HOME": fault.BadInput, "$NAME/x": fault.BadInput, "$/x": fault.BadInput,
	} {
		if out, err := r.run(t, Run{Command: "pwd", Cwd: cwd}); fault.Of(err) != code {
			t.Errorf("%q: %v %v, want %v", cwd, out, err, code)
		}
	}
}

// TestOutputLimits names every limit that is met, and loses no run.
func TestOutputLimits(t *testing.T) {
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill})
	r.mustRun(t, Run{Command: "for i in 1 2 3 4 5; do printf 0123456789 > out/$i; done; head -c 100 /dev/zero > out/zero; printf 'ä%.0s' $(seq 30) > out/umlauts"})
	limits := func(files, file, total int64) *Outputs {
		return &Outputs{Globs: []string{"out/*"}, Inline: true, MaxFiles: files, MaxFileBytes: file, MaxTotalBytes: total, Save: true}
	}
	for name, c := range map[string]struct {
		run   Run
		hit   string
		files int
		saved int
	}{
		"none":            {Run{Outputs: limits(100, 1000, 1000)}, "[]", 7, 7},
		"max_files":       {Run{Outputs: limits(2, 1000, 1000)}, "[max_files]", 2, 2},
		"max_total_bytes": {Run{Outputs: limits(100, 1000, 25)}, "[max_total_bytes]", 2, 2},
		"max_file_bytes":  {Run{Outputs: limits(100, 11, 1000)}, "[max_file_bytes]", 7, 5},
		"max_output":      {Run{Outputs: limits(100, 1000, 1000), Budget: 33}, "[max_output]", 7, 7},
	} {
		c.run.Command = "true"
		out := r.mustRun(t, c.run)
		if fmt.Sprint(out.LimitsHit) != c.hit || len(out.OutputFiles) != c.files || len(out.ArtifactFiles) != c.saved {
			t.Errorf("%s: %+v", name, out)
		}
		total := 0
		for _, f := range out.OutputFiles {
			total += len(f.Content)
			if f.Name == "out/umlauts" && strings.Contains(f.Content, "\ufffd") {
				t.Errorf("%s: a character was cut in two: %q", name, f.Content)
			}
			if f.Name == "out/zero" && f.Content != "" {
				t.Errorf("%s: binary content", name)
			}
		}
		if c.run.Budget > 0 && total > c.run.Budget {
			t.Errorf("%s: %d bytes of content", name, total)
		}
	}
	out := r.mustRun(t, Run{Command: "head -c 1000000 /dev/zero | tr '\\0' x; head -c 9 /dev/zero | tr '\\0' y >&2", Budget: 4000})
	if out.StdoutBytes != 1000000 || len(out.Stdout) > 1100 || out.Stderr != "yyyyyyyyy" || out.StderrBytes != 0 {
		t.Errorf("stdout %d of %d, stderr %q", len(out.Stdout), out.StdoutBytes, out.Stderr)
	}
}

func TestInputsFromAllowedRoots(t *testing.T) {
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill, "skills/s/a b/x.txt": "x"})
	outside := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "f"), []byte("allowed"), 0o600), os.MkdirAll(filepath.Join(outside, "d/e"), 0o755), os.WriteFile(filepath.Join(outside, "d/e/g"), []byte("deep"), 0o600)); err != nil {
		t.Fatal(err)
	}
	in := []Input{{From: "host://" + outside + "/f"}, {From: "host://" + outside + "/d", To: "work/inputs/tree/"}}
	if _, err := r.run(t, Run{Command: "true", Inputs: in}); fault.Of(err) != fault.OutsideWorkspace {
		t.Error("not allowed:", err)
	}
	r.engine.AllowRead = []string{outside}
	in = append(in, Input{From: "skill://s/a%20b/x.txt", To: "out/"}, Input{From: "skill://s/a b"})
	out := r.mustRun(t, Run{Command: "cat inputs/f inputs/tree/d/e/g out/x.txt 'inputs/a b/x.txt'", Inputs: in})
	if out.Stdout != "alloweddeepxx" {
		t.Errorf("%+v", out)
	}
	many := make([]Input, maxInputs+1)
	if _, err := r.run(t, Run{Command: "true", Inputs: many}); fault.Of(err) != fault.BadInput {
		t.Error("too many:", err)
	}
}

// TestLoginShell: the environment is that of a login shell, resolved once, without secrets.
func TestLoginShell(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("OWN", "server")
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill})
	profile := "echo noise; export FROM_PROFILE=yes MY_TOKEN=secret PATH=/profile/bin:$PATH; echo x >> " + r.dir + "/count\n"
	if err := os.WriteFile(filepath.Join(home, ".bash_profile"), []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		out := r.mustRun(t, Run{Command: "echo $FROM_PROFILE $OWN-$MY_TOKEN; echo $PATH"})
		lines := strings.Split(out.Stdout, "\n")
		if lines[0] != "yes server-" || !strings.HasPrefix(lines[1], "/profile/bin:") {
			t.Errorf("%q", out.Stdout)
		}
	}
	if count, _ := os.ReadFile(filepath.Join(r.dir, "count")); string(count) != "x\n" {
		t.Errorf("the login shell ran %d times", len(count)/2)
	}
	if err := os.WriteFile(filepath.Join(home, ".bash_profile"), []byte("exit 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill})
	if out := broken.mustRun(t, Run{Command: "echo $OWN"}); out.Stdout != "server\n" {
		t.Errorf("without a login shell: %+v", out)
	}
}

// TestRunEndsWithItsCaller: a cancelled run has no result, and leaves no child.
func TestRunEndsWithItsCaller(t *testing.T) {
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	_, err := r.Run(ctx, Run{Skill: "s", Command: "sleep 60", Start: r.sh.Run, Budget: 1000, Timeout: time.Minute})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSplitWords(t *testing.T) {
	for line, want := range map[string]string{
		"": "[]", "  a  b ": `["a" "b"]`, `'a b' "c d"`: `["a b" "c d"]`, `a\ b`: `["a b"]`, `"a\"b\$c\n"`: `["a\"b$c\\n"]`, `''`: `[""]`,
		`a'b'"c"`: `["abc"]`, `$(x); *`: `["$(x);" "*"]`, "a\\\nb": `["ab"]`,
	} {
		if words, ok := splitWords(line); !ok || fmt.Sprintf("%q", words) != want {
			t.Errorf("%q: %q %v", line, words, ok)
		}
	}
	for _, line := range []string{`'`, `"a`, `a\`, `"a\"`} {
		if words, ok := splitWords(line); ok {
			t.Errorf("%q: %q", line, words)
		}
	}
}

func FuzzSplitWords(f *testing.F) {
	f.Add(`a 'b c' "d\"e" \f`)
	f.Fuzz(func(t *testing.T, line string) {
		words, ok := splitWords(line)
		if !ok {
			return
		}
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		again, ok := splitWords(strings.Join(quoted, " "))
		if !ok || fmt.Sprintf("%q", again) != fmt.Sprintf("%q", words) {
			t.Errorf("%q: %q, quoted %q", line, words, again)
		}
	})
}

func TestPatterns(t *testing.T) {
	for text, want := range map[string]string{
		"out/*.txt": "out", " ./out//a/b ": "out/a", "workspace://out/**": "out", "/work/x": "work", "$OUTPUT_DIR/**": "out", "${RUN_DIR}/x": "runs/r", "*": ".", "{out,work}/x": ".", "$WORKSPACE_DIR/out/x": "out",
	} {
		if p, err := compile(text, "runs/r"); err != nil || p.start != want {
			t.Errorf("%q: %q %v, want %q", text, p.start, err, want)
		}
	}
	for text, code := range map[string]fault.Code{
		"": fault.BadInput, "../x": fault.OutsideWorkspace, "out/../../x": fault.OutsideWorkspace, "$HOME/x": fault.BadInput, "$SKILL_DIR/x": fault.BadInput, "out/[": fault.BadInput, "{a": fault.BadInput, "$x": fault.BadInput,
	} {
		if p, err := compile(text, "runs/r"); fault.Of(err) != code {
			t.Errorf("%q: %+v %v, want %v", text, p, err, code)
		}
	}
}

func TestArtifactNames(t *testing.T) {
	for _, name := range []string{"a", "a/b.txt", "ü", "a@b", strings.Repeat("x", 512)} {
		if !goodName(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", "/a", "a/", "a//b", ".", "a/..", "a\nb", "\xff", strings.Repeat("x", 513)} {
		if goodName(name) {
			t.Errorf("%q is taken", name)
		}
	}
	for ref, want := range map[string]string{"a@3": "a 3", "a": "a -1", "a@b@0": "a@b 0", "a@": "a@ -1", "@3": "@3 -1"} {
		if name, version := cutVersion(ref); fmt.Sprint(name, " ", version) != want {
			t.Errorf("%q: %q %d", ref, name, version)
		}
	}
}

func TestDirectives(t *testing.T) {
	for stdout, want := range map[string]string{
		"": "nothing", " \n": "nothing", "text": "nothing", `{"decision":"block"}`: "block", "{}": "", `{} x`: "invalid", `{"decision":1}`: "invalid",
		`{"updatedInput":{"a":1}}`: " map[a:1]", `{"updatedInput":null}`: "", `{"updatedInput":"x"}`: "invalid", `{`: "invalid", `{"unknown":1}`: "",
	} {
		d, err := parseDirective(stdout)
		got := "invalid"
		switch {
		case err == nil && d == nil:
			got = "nothing"
		case err == nil && d.input != nil:
			got = fmt.Sprint(d.Decision, " ", d.input)
		case err == nil:
			got = d.Decision
		}
		if got != want {
			t.Errorf("%q: %s, want %s", stdout, got, want)
		}
	}
}

func TestLoadFitsItsBudget(t *testing.T) {
	r := newRig(t, map[string]string{
		"skills/s/SKILL.md": plainSkill, "skills/s/a.md": strings.Repeat("a", 3000), "skills/s/b.md": strings.Repeat("ü", 3000), "skills/s/c.md": "c",
		"skills/big/SKILL.md": "---\nname: big\ndescription: d\n---\n" + strings.Repeat("x", 5000),
	})
	for budget, want := range map[int]string{
		100000: "c\n</skill_resource>", 9000: "\n\nDocs cut at 9000 bytes: b.md, c.md", 2000: "\n\nDocs cut at 2000 bytes: a.md, b.md, c.md",
	} {
		text, err := r.Load(t.Context(), "s", nil, true, budget)
		if err != nil || len(text) > budget || !strings.HasSuffix(text, want) || strings.Contains(text, "\ufffd") {
			t.Errorf("%d: %d bytes, …%q %v", budget, len(text), text[max(0, len(text)-60):], err)
		}
	}
	text, err := r.Load(t.Context(), "big", nil, false, 1000)
	if err != nil || len(text) > 1000 || !strings.HasSuffix(text, "[cut at 1000 bytes; the whole text is skill://big/SKILL.md]") {
		t.Errorf("big: %d bytes, %q %v", len(text), text[max(0, len(text)-80):], err)
	}
}

func FuzzDirective(f *testing.F) {
	f.Add(`{"decision":"block","updatedInput":{"a":[1]}}`)
	f.Add("{")
	f.Fuzz(func(t *testing.T, stdout string) {
		d, err := parseDirective(stdout)
		if err != nil && d != nil || err == nil && d == nil && strings.HasPrefix(strings.TrimSpace(stdout), "{") {
			t.Errorf("%q: %v %v", stdout, d, err)
		}
	})
}

// FuzzPattern: whatever a pattern is, what it matches lies inside.
func FuzzPattern(f *testing.F) {
	for _, text := range []string{"out/**", "$WORK_DIR/*", "../x", "a/{b,c}/[d", "${RUN_DIR}", "//./x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := compile(text, "runs/r")
		if err == nil && (strings.HasPrefix(p.start, "/") || strings.Contains("/"+p.start+"/", "/../")) {
			t.Errorf("%q: %+v", text, p)
		}
	})
}
