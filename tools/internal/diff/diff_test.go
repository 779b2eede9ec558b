package diff

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

func TestUnified(t *testing.T) {
	long := strings.Repeat("line\n", 20)
	cases := []struct {
		name    string
		changes []Change
		want    string
	}{
		{"nothing", []Change{{From: "a", To: "a", Old: []byte("x"), New: []byte("x")}}, ""},
		{"new", []Change{{To: "a", New: []byte("x\ny")}},
			"diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n"},
		{"new and empty", []Change{{To: "a"}}, "diff --git a/a b/a\nnew file mode 100644\n"},
		{"deleted", []Change{{From: "a", Old: []byte("x\n")}},
			"diff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"},
		{"renamed", []Change{{From: "a", To: "b", Old: []byte("x\n"), New: []byte("x\n")}},
			"diff --git a/a b/b\nrename from a\nrename to b\n"},
		{"in the middle", []Change{{From: "a", To: "a", Old: []byte(long + "x\n" + long), New: []byte(long + "y\n" + long)}},
			"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -18,7 +18,7 @@\n line\n line\n line\n-x\n+y\n line\n line\n line\n"},
		{"newline added", []Change{{From: "a", To: "a", Old: []byte("x"), New: []byte("x\n")}},
			"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n"},
		{"binary", []Change{{From: "a", To: "a", Old: []byte("x\x00"), New: []byte("y\n")}},
			"diff --git a/a b/a\nBinary files a/a and b/a differ\n"},
		{"not known", []Change{{From: "a", To: "a", New: []byte("y\n"), Omitted: "is too large"}},
			"diff --git a/a b/a\n\\ Not compared: it is too large.\n"},
		{"a hostile name", []Change{{To: "a\n+++ b/\"x\\", New: []byte("y\n")}},
			"diff --git \"a/a\\012+++ b/\\\"x\\\\\" \"b/a\\012+++ b/\\\"x\\\\\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/a\\012+++ b/\\\"x\\\\\"\n@@ -0,0 +1 @@\n+y\n"},
		{"not UTF-8", []Change{{To: "a", New: []byte("\xff\xfe\n")}},
			"diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+\ufffd\n"},
	}
	for _, c := range cases {
		if got := Unified(c.changes); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestBounds: whatever the files are, the diff is valid text of at most 64 KiB, and
// says what is missing.
func TestBounds(t *testing.T) {
	testlevel.NotQuick(t, "compares megabytes")
	many := make([]Change, 3000)
	for i := range many {
		many[i] = Change{To: fmt.Sprintf("file%d", i), New: []byte("x\n")}
	}
	cases := []struct {
		name, says string
		changes    []Change
	}{
		{"many lines", "the rest of this file is not shown", []Change{{To: "a", New: []byte(strings.Repeat("é\n", 300_000))}}},
		{"a long line", "… (1048577 bytes)", []Change{{To: "a", New: []byte("x" + strings.Repeat("é", 1<<19) + "\n")}}},
		{"many files", "more files are not shown", many},
		{"nothing in common", "Not compared: the part that changed has 4194306 bytes", []Change{{From: "a", To: "a", Old: []byte("a" + strings.Repeat("x\n", 2<<20) + "b"), New: []byte("z")}}},
		{"a long name", "… (200006 bytes)", []Change{{To: strings.Repeat("n/", 100_000), New: []byte("x")}}},
	}
	for _, c := range cases {
		got := Unified(c.changes)
		if len(got) > maxDiff || !utf8.ValidString(got) || !strings.Contains(got, c.says) {
			t.Errorf("%s: %d bytes, ending %q", c.name, len(got), got[max(0, len(got)-200):])
		}
	}
	// Little of a large file is little work, and is shown whole.
	large := strings.Repeat("0123456789abcdef\n", 1<<21)
	got := Unified([]Change{{From: "a", To: "a", Old: []byte(large + "x\n" + large), New: []byte(large + "y\n" + large)}})
	if !strings.Contains(got, "@@ -2097150,7 +2097150,7 @@\n") || !strings.Contains(got, "-x\n+y\n") {
		t.Errorf("%.300s", got)
	}
}

// TestScattered: however many lines differ, those that do not are not among them.
func TestScattered(t *testing.T) {
	var old, new strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&old, "line %d\n", i)
		if i%5 == 0 {
			fmt.Fprintf(&new, "changed %d\n", i)
		} else {
			fmt.Fprintf(&new, "line %d\n", i)
		}
	}
	got := Unified([]Change{{From: "a", To: "a", Old: []byte(old.String()), New: []byte(new.String())}})
	if removed, added := strings.Count(got, "\n-line"), strings.Count(got, "\n+changed"); removed != 400 || added != 400 {
		t.Errorf("%d lines removed, %d added, of 400 that differ", removed, added)
	}
}

// TestGitTakesIt: git applies what is shown and comes to the same files.
func TestGitTakesIt(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git")
	}
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(40) {
			b.WriteString(string(rune('a'+random.IntN(4))) + "\n")
		}
		if random.IntN(4) == 0 {
			b.WriteString("end")
		}
		return b.String()
	}
	for i := range 30 {
		dir := t.TempDir()
		old, new := text(), text()
		if err := os.WriteFile(filepath.Join(dir, "a b"), []byte(old), 0o644); err != nil {
			t.Fatal(err)
		}
		c := Change{From: "a b", To: "a b", Old: []byte(old), New: []byte(new)}
		if i%3 == 0 {
			c.To = "c"
		}
		shown := Unified([]Change{c})
		if shown == "" {
			continue
		}
		cmd := exec.Command(git, "apply", "--unsafe-paths", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(shown)
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%q\n%q\n%s", err, out, old, new, shown)
		}
		if got, err := os.ReadFile(filepath.Join(dir, c.To)); err != nil || string(got) != new {
			t.Fatalf("%v\n%s\ngot  %q\nwant %q", err, shown, got, new)
		}
	}
}

func FuzzUnified(f *testing.F) {
	f.Add([]byte("a\nb\n"), []byte("a\nc"))
	f.Add([]byte("\n\n\n\n\n"), []byte("\n\n\n\n\n\n\n"))
	f.Fuzz(func(t *testing.T, old, new []byte) {
		got := Unified([]Change{{From: "f", To: "f", Old: old, New: new}})
		if len(got) > maxDiff || !utf8.ValidString(got) || (got == "") != (string(old) == string(new)) {
			t.Errorf("%q", got)
		}
	})
}

// BenchmarkUnified measures what costs most: much that changed, here and there, in as
// large a part as is compared.
func BenchmarkUnified(b *testing.B) {
	var old, new strings.Builder
	for i := 0; new.Len() < maxPart-100; i++ {
		fmt.Fprintf(&old, "%d\n", i)
		if i%10 == 0 {
			fmt.Fprintf(&new, "x%d\n", i)
		} else {
			fmt.Fprintf(&new, "%d\n", i)
		}
	}
	c := []Change{{From: "a", To: "a", Old: []byte(old.String()), New: []byte(new.String())}}
	b.Run("scattered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = Unified(c)
		}
	})
	b.Run("floor=two lines of it", func(b *testing.B) {
		small := []Change{{From: "a", To: "a", Old: c[0].Old, New: append([]byte("y\n"), c[0].Old...)}}
		b.ReportAllocs()
		for b.Loop() {
			_ = Unified(small)
		}
	})
}
