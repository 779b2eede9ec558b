package search

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestAgainstRipgrep holds files, counts and lines against ripgrep, over a
// generated tree with ignore files, for patterns that mean the same in both.
func TestAgainstRipgrep(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("no rg here: nothing to compare with")
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(21, 22))
	words := append(strings.Fields("foo bar Foo BAR import func error Error straße ÉTÉ été naïve x_1 kilo Ski a.b (c) 本"), "\n", "\n", "\n", " ", "\t", "")
	for i := range 120 {
		var b strings.Builder
		for range r.IntN(80) {
			b.WriteString(words[r.IntN(len(words))])
			b.WriteString([]string{"", " ", "_"}[r.IntN(3)])
		}
		write(t, dir, fmt.Sprintf("d%d/%s%d/f%d.%s", i%5, []string{"", "."}[r.IntN(8)/7], i%3, i, []string{"go", "py", "log"}[i%3]), b.String())
	}
	write(t, dir, ".gitignore", "*.log\n!f2?.log\n/d1/1\n", "d2/.gitignore", "f*1.py\n!f41.py\n")
	trees := map[string]Tree{"os.Root": openRoot(t, dir), "descriptors": openRaw(t, dir)}
	patterns := []string{
		"foo", "foo|bar|import", `\bfoo\b`, "^foo", "r$", `[A-Z][a-z]+`, `(?i)error`, `k`, `s`, `été`, `straße`, `\w+_\w+`, `a\.b`, `\d`, "^$", "nothing at all",
		`(foo|bar)_?(func|x)`, `o{2}`, `本.*本`, `\(c\)`,
	}
	for _, pattern := range patterns {
		for _, fold := range []bool{false, true} {
			for _, hidden := range []bool{false, true} {
				ascii := strings.ReplaceAll(pattern, `\b`, `(?-u:\b)`) // as in RE2
				args := []string{"--no-require-git", "--no-config", "-j1", "--no-heading", "-e", ascii}
				if fold {
					args = append(args, "-i")
				}
				if hidden {
					args = append(args, "--hidden")
				}
				for mode, flag := range map[Mode]string{Files: "-l", Count: "-c", Content: "-n"} {
					want := sortedRg(t, rg, dir, append(slices.Clone(args), flag))
					for name, tree := range trees {
						q := Query{Pattern: pattern, CaseInsensitive: fold, Hidden: hidden, Mode: mode, Limit: 10000}
						got := grep(t, tree, q)
						if strings.HasPrefix(got, "No matches") {
							got = ""
						}
						lines := strings.Split(got, "\n")
						slices.Sort(lines)
						if !slices.Equal(lines, want) {
							t.Fatalf("%s, %v over %s:\n%q\nrg says\n%q", mode, args, name, lines, want)
						}
					}
				}
			}
		}
	}
}

func sortedRg(t *testing.T, rg, dir string, args []string) []string {
	t.Helper()
	cmd := exec.Command(rg, append(args, ".")...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "./")
	}
	slices.Sort(lines)
	return lines
}
