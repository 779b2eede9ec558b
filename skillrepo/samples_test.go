package skillrepo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// samples is the directory of the skills that the project ships as examples.
func samples(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../testdata/skills")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run runs a program and returns its output and exit code. A test without the program is skipped.
func run(t *testing.T, dir, stdin string, args ...string) (string, int) {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "PROJECT_DIR="+dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestSamplesLoadWithoutDiagnostics(t *testing.T) {
	r := open(t, wide(samples(t)))
	if got := names(r); got != "code-review python-check release-notes safe-shell" {
		t.Errorf("%q", got)
	}
	inv, err := r.Inventory(t.Context())
	if err != nil || len(inv.Diagnostics) != 0 {
		t.Errorf("%v, %v", inv.Diagnostics, err)
	}
	for _, s := range inv.Skills {
		if !s.Published || len(s.Diagnostics) != 0 {
			t.Errorf("%+v", s)
		}
	}
	guard, _ := r.Get(t.Context(), "safe-shell")
	if len(guard.Hooks) != 2 || guard.Hooks[0].Matcher != "Bash" || guard.Hooks[1].Event != "PostToolUse" {
		t.Errorf("%+v", guard.Hooks)
	}
	check, _ := r.Get(t.Context(), "python-check")
	if !check.MatchesPath("src/a.py", "/ws") || check.MatchesPath("src/a.go", "/ws") {
		t.Errorf("%v", check.Paths)
	}
}

func TestSamplesAreStrictlyValid(t *testing.T) {
	want := map[string]string{
		"code-review": "", "release-notes": "",
		"safe-shell":   "Unexpected fields in frontmatter: hooks" + only,
		"python-check": "Unexpected fields in frontmatter: paths" + only,
	}
	for name, errs := range want {
		rep := Validate(t.Context(), wide(filepath.Join(samples(t), name)), name)
		if got := strings.Join(rep.Errors, "\n"); got != errs || len(rep.Warnings) != 0 {
			t.Errorf("%s: %+v", name, rep)
		}
		if notes := strings.Join(rep.Notes(), "\n"); (errs == "") != (notes == "") || errs != "" && !strings.Contains(notes, " is an extension: perstack-base") {
			t.Errorf("%s: notes %q", name, notes)
		}
	}
}

func TestReleaseNotesFillsItsTemplate(t *testing.T) {
	dir, skill := t.TempDir(), filepath.Join(samples(t), "release-notes")
	write(t, dir, map[string]string{
		"d.json":   `{"product":"Kiln","version":"2.1","date":"2025-03-01","summary":"Faster.","added":[{"text":"Dry run","issue":"#1"},{"text":"{{version}}","issue":"#2"}],"fixed":[]}`,
		"bad.json": `{"product":"Kiln","version":"2.1","date":"2025-03-01","added":[],"fixed":[]}`,
	})
	fill := func(data string) (string, int) {
		return run(t, skill, "", "python3", "scripts/fill.py", "assets/notes.md.tmpl", filepath.Join(dir, data))
	}
	want := "# Kiln 2.1 (2025-03-01)\n\nFaster.\n\n## Added\n\n- Dry run (#1)\n- {{version}} (#2)\n"
	if out, code := fill("d.json"); out != want || code != 0 {
		t.Errorf("%d: %q", code, out)
	}
	if out, code := fill("bad.json"); out != "the data lacks 'summary'\n" || code != 1 {
		t.Errorf("%d: %q", code, out)
	}
}

func TestCodeReviewReadsADiff(t *testing.T) {
	repo, scripts := t.TempDir(), filepath.Join(samples(t), "code-review/scripts")
	git := func(args ...string) {
		if out, code := run(t, repo, "", append([]string{"git", "-c", "user.name=x", "-c", "user.email=x@x"}, args...)...); code != 0 {
			t.Fatal(out)
		}
	}
	git("init", "-q")
	write(t, repo, map[string]string{"a b.py": "x = 1\ny = 2\n", "c.go": "package c\n"})
	git("add", ".")
	git("commit", "-qm", "first")
	if out, code := run(t, repo, "", "bash", filepath.Join(scripts, "risky-lines.sh")); out != "" || code != 0 {
		t.Errorf("nothing changed: %d %q", code, out)
	}
	write(t, repo, map[string]string{"a b.py": "x = 1\npassword = 'hunter2'\ny = 2\nrequests.get(u, verify=False)\n", "c.go": "package c\n\n// TODO: all of it\n"})
	want := "a b.py:2: secret: password = 'hunter2'\na b.py:4: no-tls-check: requests.get(u, verify=False)\nc.go:3: unfinished: // TODO: all of it\n"
	if out, code := run(t, repo, "", "bash", filepath.Join(scripts, "risky-lines.sh"), "HEAD"); strings.ReplaceAll(out, "a b.py\t", "a b.py") != want || code != 1 {
		t.Errorf("%d: %q; want %q", code, out, want)
	}
	if out, code := run(t, repo, "", "bash", filepath.Join(scripts, "diff-stats.sh")); !strings.Contains(out, "2\t+2 -0\ta b.py\n") || !strings.Contains(out, "total\t2 files, +4 -0") || code != 0 {
		t.Errorf("%d: %q", code, out)
	}
	for _, script := range []string{"risky-lines.sh", "diff-stats.sh"} {
		if out, code := run(t, repo, "", "bash", filepath.Join(scripts, script), "nope"); !strings.Contains(out, "no such commit: nope") || code != 2 {
			t.Errorf("%s: %d %q", script, code, out)
		}
	}
}

func TestSafeShellGuards(t *testing.T) {
	testlevel.NotQuick(t, "starts Python for each command")
	dir, guard := t.TempDir(), filepath.Join(samples(t), "safe-shell/scripts/guard.py")
	tests := map[string]bool{ // tool_input -> blocked
		`{"command":"rm -rf x"}`: true, `{"command":"rm -fr x"}`: true, `{"command":"rm -r -f x"}`: true, `{"command":"rm x -R --force"}`: true,
		`{"command":"rm --recursive --force x"}`: true, `{"command":"cd a && sudo /bin/rm -rf ."}`: true, `{"command":"sh -c 'rm -rf x'"}`: true,
		`{"command":"rm","args":["-rf","x"]}`: true, `{"command":["rm","-rf","x"]}`: true, `{"command":"echo a;rm -rf b"}`: true, `{"command":"rm -rf 'x"}`: true,
		`{"command":"a\nrm -rf b"}`: true, `{"command":"\\rm -rf b"}`: true, `{"command":"echo $(rm -rf b)"}`: true,
		`{"command":"rm x"}`: false, `{"command":"rm -r x"}`: false, `{"command":"rm -f x"}`: false, `{"command":"rm -r x; rm -f y"}`: false,
		`{"command":"ls -rf"}`: false, `{"command":"echo rm; ls -rf"}`: false, `{"command":"git rm x"}`: false, `{"script":"a.sh","args":"-rf"}`: false, `{}`: false,
	}
	for input, blocked := range tests {
		out, code := run(t, dir, `{"hook_event_name":"PreToolUse","tool_name":"exec","tool_input":`+input+`}`, "python3", guard)
		if code != 0 || strings.Contains(out, `"decision": "block"`) != blocked || !blocked && out != "" {
			t.Errorf("%s: %d %q; want blocked %v", input, code, out, blocked)
		}
	}
}

func TestSafeShellKeepsALog(t *testing.T) {
	dir, audit := t.TempDir(), filepath.Join(samples(t), "safe-shell/scripts/audit.py")
	for range 2 {
		if out, code := run(t, dir, `{"tool_name":"exec","tool_input":{"command":"SECRET"},"tool_output":"four","session_id":"s"}`, "python3", audit); out != "" || code != 0 {
			t.Fatalf("%d: %q", code, out)
		}
	}
	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil || strings.Count(string(log), `"tool": "exec", "answer_characters": 4}`+"\n") != 2 || strings.Contains(string(log), "SECRET") {
		t.Errorf("%q, %v", log, err)
	}
}

func TestPythonCheckFindsMistakes(t *testing.T) {
	dir, check := t.TempDir(), filepath.Join(samples(t), "python-check/scripts/check.py")
	write(t, dir, map[string]string{
		"bad.py":    "def f(a=[]):\n    try:\n        return a == None\n    except:\n        assert (a, 'x')\n",
		"good.py":   "def f(a=None):\n    assert a is None, 'x'\n",
		"broken.py": "def (:\n",
	})
	out, code := run(t, dir, "", "python3", check, "bad.py", "good.py", "broken.py")
	for _, want := range []string{"bad.py:1: mutable-default:", "bad.py:3: compare-none:", "bad.py:4: bare-except:", "bad.py:5: assert-tuple:", "broken.py:1: syntax:"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
	if code != 1 || strings.Count(out, "\n") != 5 {
		t.Errorf("%d: %q", code, out)
	}
	if out, code := run(t, dir, "", "python3", check, "good.py"); out != "" || code != 0 {
		t.Errorf("%d: %q", code, out)
	}
	if _, code := run(t, dir, "", "python3", check); code != 2 {
		t.Errorf("without files: %d", code)
	}
}
