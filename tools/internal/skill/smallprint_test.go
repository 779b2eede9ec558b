package skill

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/process"
)

// TestSmallPrint takes what the original takes.
func TestSmallPrint(t *testing.T) {
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill, "in.txt": "input"})
	from := "host://" + r.dir + "/in.txt"
	out := r.mustRun(t, Run{Command: "readlink inputs/in.txt; cat inputs/in.txt", Inputs: []Input{{From: from, Mode: " LINK ", To: "."}}})
	if out.Stdout != r.dir+"/in.txt\ninput" {
		t.Errorf("mode and to: %q %q", out.Stdout, out.Stderr)
	}
	if _, err := r.run(t, Run{Command: "true", Inputs: []Input{{From: from, Mode: "hard link"}}}); fault.Of(err) != fault.BadInput {
		t.Errorf("another mode: %v", err)
	}
	out = r.mustRun(t, Run{Command: "echo x > out/f; pwd", Cwd: "", OutputFiles: []string{"", " . ", "out/*"}})
	if len(out.OutputFiles) != 1 || out.OutputFiles[0].Name != "out/f" {
		t.Errorf("globs: %+v", out.OutputFiles)
	}
	if out := r.mustRun(t, Run{Command: "pwd", Cwd: "/"}); out.Stdout != r.work.dir.Root()+"\n" {
		t.Errorf("cwd: %q", out.Stdout)
	}
	_, err := r.Select(t.Context(), "s", nil, false, "Everything", 1000)
	if err == nil || !strings.HasSuffix(err.Error(), `add, replace, clear, not "Everything"`) {
		t.Errorf("mode of select: %v", err)
	}
}

// confined skips a test that needs a kernel which confines commands.
func confined(t *testing.T, r *rig) {
	t.Helper()
	out, err := r.sh.Run(t.Context(), process.Command{Name: "cat", Args: []string{"/etc/shadow", "/root/.profile"}, Stderr: true})
	if err != nil || len(out.Refused) == 0 {
		t.Skip("commands are not confined here")
	}
}

// TestReadOnlyCopy: a command that writes the copy of its skill is told where to
// write, and of no flag and no private path.
func TestReadOnlyCopy(t *testing.T) {
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill, "skills/s/data.txt": "x", "skills/s/no.sh": "exit 0"})
	confined(t, r)
	if err := os.Chmod(filepath.Join(r.dir, "skills/s/no.sh"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"mkdir .venv", "touch new.txt", "echo y > sub", "echo y >> data.txt", "echo y >> $SKILL_DIR/data.txt", "rm -rf $SKILL_DIR; exit 1", "mkdir .venv; mkdir .v2"} {
		out := r.mustRun(t, Run{Command: command})
		if !slices.Equal(out.Warnings, []string{readOnlyCopy}) {
			t.Errorf("%s: %q %q", command, out.Warnings, out.Stderr)
		}
	}
	for _, command := range []string{"touch out/x work/y; exit 3", "cat nothing", "echo Permission denied >&2; exit 1", "mkdir sub; true"} {
		if out := r.mustRun(t, Run{Command: command}); len(out.Warnings) != 0 {
			t.Errorf("%s: %q %q", command, out.Warnings, out.Stderr)
		}
	}
}

// TestRefusalsAreTold: what the sandbox refused stands in the answer of a script
// and in the text of an inline command.
func TestRefusalsAreTold(t *testing.T) {
	testlevel.NotQuick(t, "waits for a deadline of seconds")
	outside := t.TempDir()
	target := filepath.Join(outside, "f")
	r := newRig(t, map[string]string{
		"skills/s/SKILL.md": "---\nname: s\ndescription: d\n---\n!`echo x > " + target + "`\n",
		"skills/s/w.sh":     "echo x > " + target + "\n", "skills/s/late.sh": "echo x > " + target + "; sleep 600\n",
	})
	confined(t, r)
	text, err := r.Open(t.Context(), "s", nil)
	told := func(text string) bool { // in a line of its own, in the words of the sandbox
		for line := range strings.Lines(text) {
			if strings.Contains(line, "by the sandbox") && strings.Contains(line, target) {
				return true
			}
		}
		return false
	}
	if err != nil || !told(text) {
		t.Errorf("inline: %s %v", text, err)
	}
	run := func(script string, timeout time.Duration) string {
		t.Helper()
		out, err := r.RunScript(t.Context(), Script{Skill: "s", Script: script, Timeout: timeout, Budget: 1 << 16, Start: r.sh.Run})
		if err != nil {
			t.Fatal(err)
		}
		return out.Failure
	}
	if got := run("w.sh", time.Minute); !strings.HasPrefix(got, "Script 'w.sh' exited with code 1\n") || !told(got) {
		t.Error(got)
	}
	if got := run("late.sh", 2*time.Second); !strings.HasPrefix(got, "Script 'late.sh' in skill 's' timed out after 2s\n") || !told(got) {
		t.Error(got)
	}
}

// TestTypeScriptWithoutRuntime: nothing is fetched where there is no network; the
// answer says why at once. With a network npx may fetch without asking.
func TestTypeScriptWithoutRuntime(t *testing.T) {
	bin := t.TempDir()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	if err := errors.Join(os.Symlink(bash, bin+"/bash"), os.WriteFile(bin+"/npx", []byte("#!"+bash+"\necho npx \"$1\" \"$2\" \"${3##*/}\"\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill, "skills/s/a.ts": "console.log(1)"})
	if _, err := r.Open(t.Context(), "s", nil); err != nil {
		t.Fatal(err)
	}
	run := func() (*ScriptResult, error) {
		return r.RunScript(t.Context(), Script{Skill: "s", Script: "a.ts", Timeout: time.Minute, Budget: 1 << 16, Start: r.sh.Run})
	}
	r.engine.Confined = func() bool { return true }
	out, err := run()
	if err == nil || !strings.Contains(err.Error(), "neither bun nor deno was found, and npx cannot fetch tsx because commands have no network") {
		t.Errorf("without network: %+v %v", out, err)
	}
	r.engine.Network = process.OpenNetwork
	if out, err := run(); err != nil || !strings.Contains(out.Output, "npx --yes tsx a.ts") {
		t.Errorf("with network: %+v %v", out, err)
	}
}

// TestLoginIsTriedAgain: a login shell that failed once is not given up.
func TestLoginIsTriedAgain(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	profile := filepath.Join(home, ".profile")
	if err := os.WriteFile(profile, []byte("exit 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill})
	marked := func() bool { return lookupEnv(r.loginEnv(t.Context()), "FROM_PROFILE") == "yes" }
	if marked() {
		t.Fatal("set without a profile")
	}
	if err := os.WriteFile(profile, []byte("export FROM_PROFILE=yes\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if marked() {
		t.Error("tried again at once: every call would wait for a broken profile")
	}
	r.engine.login.again = time.Now().Add(-time.Second)
	if !marked() {
		t.Error("the failure is believed for ever")
	}
}

// TestHooksOutOfReach: where commands may write the copy of a skill too, its hooks
// would be no guard, so it is not activated.
func TestHooksOutOfReach(t *testing.T) {
	hooked := "---\nname: s\ndescription: d\nhooks:\n  PreToolUse:\n    - hooks: [{type: command, command: 'exit 1'}]\n---\n"
	r := newRig(t, map[string]string{"skills/s/SKILL.md": hooked, "skills/s/check.sh": "exit 0"})
	if _, err := r.Open(t.Context(), "s", nil); err != nil {
		t.Fatal(err)
	}
	first := r.active["s"].guard.copy
	if data, err := os.ReadFile(filepath.Join(r.work.abs(first), "check.sh")); string(data) != "exit 0" {
		t.Errorf("the copy: %q %v", data, err)
	}
	if _, err := r.Open(t.Context(), "s", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.work.abs(first)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy of the activation before is still there: %v", err)
	}
	r.engine.AllowWrite = []string{os.Getenv("XDG_CACHE_HOME")}
	if _, err := r.Open(t.Context(), "s", nil); fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "--allow-write") {
		t.Errorf("with a cache that commands write: %v", err)
	}
}
