package search

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// gitIgnored returns which of the paths git itself ignores in dir.
func gitIgnored(t *testing.T, dir string, paths []string) map[string]bool {
	t.Helper()
	cmd := exec.Command("git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	cmd.Stdin = strings.NewReader(strings.Join(paths, "\x00"))
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatal(err)
	}
	ignored := map[string]bool{}
	for p := range strings.SplitSeq(string(out), "\x00") {
		ignored[p] = true
	}
	return ignored
}

// ourIgnored walks dir by the rules and returns which paths they leave out.
func ourIgnored(t *testing.T, tree Tree) map[string]bool {
	t.Helper()
	ignored := map[string]bool{}
	var visit func(d Dir, prefix string, r *rules, under bool)
	visit = func(d Dir, prefix string, r *rules, under bool) {
		defer d.Close()
		r = readRules(d, ".gitignore", len(prefix), r)
		entries, err := d.ReadDir()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name == ".git" {
				continue
			}
			out := under || r.ignores(prefix, e.Name, e.Kind == Directory)
			ignored[prefix+e.Name] = out
			if e.Kind == Directory {
				sub, err := d.OpenDir(e.Name)
				if err != nil {
					t.Fatal(err)
				}
				visit(sub, prefix+e.Name+"/", r, out)
			}
		}
	}
	root, _, err := tree.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	visit(root, "", rulesAbove(tree, "."), false)
	return ignored
}

func gitInit(t *testing.T) (dir string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here: nothing to compare with")
	}
	dir = t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// compareIgnored checks every path below dir against git.
func compareIgnored(t *testing.T, dir string) (n int) {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == ".git" {
			return fs.SkipDir
		}
		if p != dir {
			paths = append(paths, strings.TrimPrefix(p, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := gitIgnored(t, dir, paths)
	for p, got := range ourIgnored(t, openRoot(t, dir)) {
		if got != want[p] {
			t.Errorf("%q: ignored %v, git says %v", p, got, want[p])
		}
		if got {
			n++
		}
	}
	return n
}

var (
	ignoreNames  = []string{"a", "b", "ab", "a.b", "b.a", "build", "x y", "x ", "A", "[a]", "a*b", "é", "!a", "#a", "a\\", "-", "foo", "a\tb", "]"}
	ignorePieces = []string{
		"a", "b", "ab", "*", "**", "/", "/", "?", "[ab]", "[!a]", "[^a-z]", "[a-", "[]a]", "[]-a]", "[[:alpha:]]", "[[:nope:]]", "[a\\]]",
		"\\", "\\a", "\\*", ".", "build", "foo", "x y", " ", "\\ ", "é", "!", "#", "-", "[[:space:]a]", "[a-\\]]", "**/", "/**", "[:a:]", "[[:]", "[\\\\]",
		"[[:upper:]-]", "[é]", "\t",
	}
)

func randomRules(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString([]string{"", "", "", "\ufeff"}[r.IntN(4)])
	for range 1 + r.IntN(6) {
		b.WriteString([]string{"", "", "", "!", "/", "#"}[r.IntN(6)])
		for range 1 + r.IntN(5) {
			b.WriteString(ignorePieces[r.IntN(len(ignorePieces))])
		}
		b.WriteString([]string{"", "", "/", " ", "  ", "/**"}[r.IntN(6)])
		b.WriteString([]string{"\n", "\n", "\r\n", "\n\n"}[r.IntN(4)])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// TestIgnoreAgainstGit holds the rules against git's own judgement, over
// generated trees with generated ignore files in many directories.
func TestIgnoreAgainstGit(t *testing.T) {
	dir := gitInit(t)
	r := rand.New(rand.NewPCG(11, 12))
	var dirs []string
	for range 60 {
		p := dir
		for range 1 + r.IntN(4) {
			p = filepath.Join(p, ignoreNames[r.IntN(len(ignoreNames))])
		}
		if os.MkdirAll(filepath.Dir(p), 0o777) == nil && os.WriteFile(p, nil, 0o666) == nil {
			dirs = append(dirs, filepath.Dir(p))
		}
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	total, rounds := 0, 150
	if testlevel.Quick() {
		rounds = 15
	}
	for round := range rounds {
		exclude := randomRules(r)
		write(t, dir, ".git/info/exclude", exclude)
		note := fmt.Sprintf("exclude %q", exclude)
		for _, d := range dirs {
			os.Remove(filepath.Join(d, ".gitignore"))
			if r.IntN(4) == 0 {
				rules := randomRules(r)
				write(t, d, ".gitignore", rules)
				note += fmt.Sprintf("\n%s: %q", d, rules)
			}
		}
		total += compareIgnored(t, dir)
		if t.Failed() {
			t.Fatalf("round %d: %s", round, note)
		}
	}
	if total < 3*rounds {
		t.Errorf("only %d paths were ignored in all: the comparison is void", total)
	}
}

// TestIgnoreFamous is the comparison for rules as people write them.
func TestIgnoreFamous(t *testing.T) {
	dir := gitInit(t)
	write(t, dir, "a/build/x", "", "build/keep", "", "src/gen/a.go", "", "src/gen/keep.go", "", "logs/1.log", "", "logs/keep.log", "",
		"foobar/x", "", "foo1/x/bar", "", "tail ", "", "tail", "", "#hash", "", "!bang", "", "doc/a/b/c.txt", "", "doc/c.txt", "",
		"node_modules/a/b", "", ".env", "", "deep/a/.gitignore", "!x\n", "deep/a/x", "", "deep/.gitignore", "a/\n", "n/.gitignore", "*\n!*/\n!*.go\n", "n/a/b.go", "", "n/a/b.c", "",
		".gitignore", "\ufeffbuild/\n/src/gen/*\n!/src/gen/keep.go\r\n*.log\r\n!keep.log\nfoo**/bar\ntail\\ \ntail   \n\\#hash\n\\!bang\n/doc/**/c.txt\nnode_modules\n.env*\n",
		".git/info/exclude", "keep.log\ndoc\n")
	if n := compareIgnored(t, dir); n < 15 {
		t.Errorf("only %d ignored", n)
	}
}

func TestIgnoreFileIsNoLink(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rules", "a\n", "a", "needle")
	if err := os.Symlink("rules", filepath.Join(dir, ".gitignore")); err != nil {
		t.Skip("no links here")
	}
	if got := grep(t, openRoot(t, dir), Query{Pattern: "needle"}); got != "a" {
		t.Errorf("a link was read as ignore file: %q", got)
	}
	if err := os.Rename(filepath.Join(dir, "rules"), filepath.Join(dir, ".gitignore")); err != nil {
		t.Fatal(err)
	}
	if got := grep(t, openRoot(t, dir), Query{Pattern: "needle"}); got == "a" {
		t.Error("the same rules in a file were not followed")
	}
}

// A hostile pattern ends, in time bounded by steps.
func TestWildmatchIsBounded(t *testing.T) {
	pattern := strings.Repeat("**/a*/", 30) + "b"
	if matchWild(pattern, strings.Repeat("aaaa/", 200)+"c", true) {
		t.Error("matched")
	}
}

func FuzzRules(f *testing.F) {
	f.Add([]byte("*.go\n!a\n/b/**/c\n[a-"), "a/b.go")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if name == "" || strings.ContainsRune(name, 0) {
			return
		}
		r := parseRules(data, 0, nil)
		r.ignores("a/", name, true)
		if bytes.IndexByte(data, '!') < 0 && !r.ignores("", name, true) && r.ignores("", name, false) {
			t.Errorf("%q ignores the file %q, not the directory", data, name)
		}
	})
}
