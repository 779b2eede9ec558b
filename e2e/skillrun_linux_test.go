package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// skillrun says lines to the example and returns what it prints.
func skillrun(t *testing.T, lines string, flags ...string) string {
	t.Helper()
	example := filepath.Join(t.TempDir(), "skillrun")
	if out, err := exec.Command("go", "build", "-o", example, "../examples/skillrun").CombinedOutput(); err != nil {
		t.Fatalf("building the example: %v\n%s", err, out)
	}
	dir := workspace(t)
	if err := os.CopyFS(filepath.Join(dir, "skills"), os.DirFS("../examples/skillrun/skills")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "text.txt"), "to be or not to be\n")
	cmd := exec.Command(example, append(flags, "-server", binary)...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(lines)
	out, err := output(cmd)
	if err != nil {
		t.Fatal(out, err)
	}
	return out
}

// shellSkills are lines for the example that any image with a shell understands, and
// what must be answered.
const shellSkills = `list
load file-tools references/limits.md
docs file-tools
input text.txt
run file-tools sh scripts/words.sh inputs/text.txt > out/words.txt
run user-file-ops sh scripts/summarize.sh inputs/text.txt
run file-tools exit 7
run no-such-skill true
quit
`

var shellAnswers = []string{
	"file-tools: Count, pack", "loaded: file-tools", "# What comes back", `["references/limits.md"]`,
	"out/words.txt (21 bytes)\n2 be\n2 to\n1 not\n1 or\n", "name: text.txt\nlines: 1\nwords: 6\nbytes: 19\nbegins:\nto be or not to be\n",
	"exit code 7\n", "Error: unknown skill: no-such-skill\nKnown skills: file-tools, ",
}

func saidAll(t *testing.T, out string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what the example says:\n%s", want, out)
		}
	}
}

// TestSkillrun talks with the example as its README does.
func TestSkillrun(t *testing.T) {
	t.Parallel()
	saidAll(t, skillrun(t, shellSkills), append(shellAnswers, "run on this machine")...)
	if _, err := exec.LookPath("python3"); err == nil {
		saidAll(t, skillrun(t, "run python-math python3 scripts/fib.py 5 > out/fib.txt\n", "-artifacts"),
			"out/fib.txt (10 bytes)\n0\n1\n1\n2\n3\n", "saved as artifact://out/fib.txt@0")
	}
}
