package patch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestUnified: each diff by itself, on the files given.
func TestUnified(t *testing.T) {
	abc := "a\nb\nc\n"
	for name, c := range map[string]struct {
		files map[string]string
		patch string
		want  map[string]string // nil: refused
		err   string
	}{
		"git":                       {map[string]string{"f": abc}, "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@ func x\n a\n-b\n+B\n c\n", map[string]string{"f": "a\nB\nc\n"}, ""},
		"without the git line":      {map[string]string{"d/f": abc}, "--- a/d/f\n+++ b/d/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c", map[string]string{"d/f": "a\nB\nc\n"}, ""},
		"diff -u":                   {map[string]string{"f": abc}, "--- f\t2024-01-01 00:00:00.0 +0000\n+++ f\t2024-01-02 00:00:00.0 +0000\n@@ -2 +2 @@\n-b\n+B\n", map[string]string{"f": "a\nB\nc\n"}, ""},
		"svn":                       {map[string]string{"f": abc}, "Index: f\n===================\n--- f\t(revision 1)\n+++ f\t(working copy)\n@@ -2 +2 @@\n-b\n+B\n", map[string]string{"f": "a\nB\nc\n"}, ""},
		"CRLF in the patch":         {map[string]string{"f": abc}, "--- a/f\r\n+++ b/f\r\n@@ -1,3 +1,3 @@\r\n a\r\n-b\r\n+B\r\n c\r\n", map[string]string{"f": "a\nB\nc\n"}, ""},
		"CRLF in the file":          {map[string]string{"f": "a\r\nb\r\n"}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n", map[string]string{"f": "a\r\nB\r\n"}, ""},
		"white space at the end":    {map[string]string{"f": "a\n"}, "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n a\n+b  \n", map[string]string{"f": "a\nb  \n"}, ""},
		"wrong counts":              {map[string]string{"f": abc, "g": abc}, "--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n a\n-b\n+B\n--- a/g\n+++ b/g\n@@ -1,1 +1,1 @@\n a\n-b\n+B\n c\n", map[string]string{"f": "a\nB\nc\n", "g": "a\nB\nc\n"}, ""},
		"wrong line":                {map[string]string{"f": strings.Repeat("x\n", 50) + abc}, "--- a/f\n+++ b/f\n@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n", map[string]string{"f": strings.Repeat("x\n", 50) + "a\nB\nc\n"}, ""},
		"new":                       {nil, "diff --git a/d/n b/d/n\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/d/n\n@@ -0,0 +1,2 @@\n+x\n+y\n", map[string]string{"d/n": "x\ny\n"}, ""},
		"new, no newline":           {nil, "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", map[string]string{"n": "x"}, ""},
		"new and empty":             {nil, "diff --git a/n b/n\nnew file mode 100644\nindex 0000000..e69de29\n", map[string]string{"n": ""}, ""},
		"new by the time of diff":   {nil, "--- n\t1970-01-01 00:00:00.000000000 +0000\n+++ n\t2024-01-02 00:00:00.0 +0000\n@@ -0,0 +1 @@\n+x\n", map[string]string{"n": "x\n"}, ""},
		"new over another":          {map[string]string{"n": abc}, "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", nil, "File n exists already."},
		"deleted":                   {map[string]string{"f": abc, "g": ""}, "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", map[string]string{"g": ""}, ""},
		"deleted and empty":         {map[string]string{"f": ""}, "diff --git a/f b/f\ndeleted file mode 100644\nindex e69de29..0000000\n", map[string]string{}, ""},
		"deleted, but longer":       {map[string]string{"f": abc + "d\n"}, "--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", nil, "File f has more lines than the patch removes, so it is not deleted."},
		"deleted, but another":      {map[string]string{"f": "z\n"}, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", nil, "Failed to find expected lines in f (patch line 3)."},
		"renamed":                   {map[string]string{"f": abc}, "diff --git a/f b/d/g\nsimilarity index 100%\nrename from f\nrename to d/g\n", map[string]string{"d/g": abc}, ""},
		"renamed and changed":       {map[string]string{"f": abc}, "diff --git a/f b/g\nsimilarity index 60%\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", map[string]string{"g": "a\nB\nc\n"}, ""},
		"renamed over another":      {map[string]string{"f": abc, "g": "x\n"}, "diff --git a/f b/g\nrename from f\nrename to g\n", nil, "File g exists already."},
		"quoted":                    {map[string]string{"ö\t\"x": abc}, "diff --git \"a/\\303\\266\\t\\\"x\" \"b/\\303\\266\\t\\\"x\"\n--- \"a/\\303\\266\\t\\\"x\"\n+++ \"b/\\303\\266\\t\\\"x\"\n@@ -2 +2 @@\n-b\n+B\n", map[string]string{"ö\t\"x": "a\nB\nc\n"}, ""},
		"blanks in the name":        {map[string]string{"a b c": abc}, "diff --git a/a b c b/a b c\nold mode 100644\nnew mode 100755\n", map[string]string{"a b c": abc}, ""},
		"end of file":               {map[string]string{"f": "a\nb"}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", map[string]string{"f": "a\nb\n"}, ""},
		"no end of file":            {map[string]string{"f": "a\nb\n"}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", map[string]string{"f": "a\nb"}, ""},
		"still no end of file":      {map[string]string{"f": "a\nb"}, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n", map[string]string{"f": "A\nb"}, ""},
		"the nearest of many":       {map[string]string{"f": strings.Repeat("x\na\ny\n", 5)}, "--- a/f\n+++ b/f\n@@ -8 +8 @@\n-a\n+B\n", map[string]string{"f": strings.Repeat("x\na\ny\n", 2) + "x\nB\ny\n" + strings.Repeat("x\na\ny\n", 2)}, ""},
		"the nearest, above":        {map[string]string{"f": strings.Repeat("x\na\ny\n", 5)}, "--- a/f\n+++ b/f\n@@ -6 +6 @@\n-a\n+B\n", map[string]string{"f": "x\na\ny\nx\nB\ny\n" + strings.Repeat("x\na\ny\n", 3)}, ""},
		"lines are gone above":      {map[string]string{"f": "q\nz\nw\n" + strings.Repeat("z\n", 20)}, "--- a/f\n+++ b/f\n@@ -15 +15 @@\n-q\n+Q\n@@ -17 +17 @@\n-w\n+W\n", map[string]string{"f": "Q\nz\nW\n" + strings.Repeat("z\n", 20)}, ""},
		"without context":           {map[string]string{"f": abc}, "--- a/f\n+++ b/f\n@@ -1,0 +2 @@\n+x\n@@ -3,0 +5 @@\n+z\n", map[string]string{"f": "a\nx\nb\nc\nz\n"}, ""},
		"lines that look like --- ": {map[string]string{"f": "a\n-- x\nb\n"}, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n--- x\n+++ y\n b\n", map[string]string{"f": "a\n++ y\nb\n"}, ""},
		"mail":                      {map[string]string{"f": abc}, "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n-- \n2.40.0\n\n", map[string]string{"f": "a\nB\nc\n"}, ""},
		"all or nothing":            {map[string]string{"f": abc, "g": abc}, "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n--- a/g\n+++ b/g\n@@ -2 +2 @@\n-nope\n+B\n", nil, "Failed to find expected lines in g (patch line 8)."},
		"copy":                      {map[string]string{"f": abc}, "diff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\n", nil, "Invalid patch hunk on line 3: copies are not supported."},
		"link":                      {nil, "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n", nil, "Invalid patch hunk on line 1: links and submodules cannot be patched (mode 120000)."},
		"binary":                    {map[string]string{"f": abc}, "diff --git a/f b/f\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKcmY\n", nil, "Invalid patch hunk on line 3: binary patches are not supported."},
		"binary, told":              {map[string]string{"f": abc}, "diff --git a/f b/f\nindex 1..2 100644\nBinary files a/f and b/f differ\n", nil, "Invalid patch hunk on line 3: binary patches are not supported."},
		"absolute":                  {nil, "--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", nil, "path must be relative: /etc/passwd"},
		"nothing":                   {map[string]string{"f": abc}, "diff --git a/f b/f\nindex 1..2 100644\n", nil, "Invalid patch hunk on line 1: Update file hunk for path 'f' is empty"},
		"only a first line":         {nil, "--- a/f\n", nil, "No files were modified."},
		"a new file with context":   {nil, "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n x\n", nil, "Invalid patch hunk on line 3: a new file has only added lines."},
		"hunk without file":         {nil, "Index: f\n@@ -1 +1 @@\n-a\n+b\n", nil, "Invalid patch hunk on line 2: the hunk has no file."},
		"lines in a deleted file":   {map[string]string{"f": abc}, "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n", nil, "File none does not exist."},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t)
			for name, data := range c.files {
				d.write(t, name, []byte(data))
			}
			before := d.files(t)
			answer, err := d.run(t, c.patch)
			if c.want == nil {
				if err == nil || err.Error() != c.err || !maps.Equal(d.files(t), before) {
					t.Errorf("got %q %v, want %s; %q", answer, err, c.err, d.files(t))
				}
				return
			}
			if got := d.files(t); err != nil || !maps.Equal(got, c.want) {
				t.Errorf("got %q %v\nwant %q", got, err, c.want)
			}
		})
	}
}

// TestUnifiedModes sets and takes the right to execute.
func TestUnifiedModes(t *testing.T) {
	d := newDisk(t)
	d.write(t, "on", []byte("x\n"))
	d.write(t, "off", []byte("x\n"))
	if err := os.Chmod(filepath.Join(d.root, "off"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := d.run(t, "diff --git a/on b/on\nold mode 100644\nnew mode 100755\ndiff --git a/off b/off\nold mode 100755\nnew mode 100644\n--- a/off\n+++ b/off\n@@ -1 +1 @@\n-x\n+y\n"+
		"diff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"on": true, "off": false, "new": true} {
		info, err := os.Stat(filepath.Join(d.root, name))
		if err != nil || (info.Mode()&0o100 != 0) != want || info.Mode()&0o400 == 0 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

// TestUnifiedHelps: what does not match is answered as for the other form.
func TestUnifiedHelps(t *testing.T) {
	_, _, err := plan("one\ntwo\nthree\n", "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-tow\n+2\n three\n")
	var match *MatchError
	if !errors.As(err, &match) || !strings.Contains(match.Hint(), "Closest lines in the file:\nL1: one\nL2: two\nL3: three") {
		t.Errorf("%v\n%s", err, match.Hint())
	}
}

// mutated is a text with some lines changed, removed and added.
func mutated(r *rand.Rand, lines []string) []string {
	var out []string
	for _, line := range lines {
		switch r.IntN(12) {
		case 0:
		case 1:
			out = append(out, line, fmt.Sprintf("new %d", r.IntN(4)))
		case 2:
			out = append(out, line+"!")
		default:
			out = append(out, line)
		}
	}
	return out
}

func randomText(r *rand.Rand, lines []string) string {
	text := strings.Join(lines, "\n")
	if len(lines) > 0 && r.IntN(3) > 0 {
		text += "\n"
	}
	return text
}

// TestUnifiedLikeGit makes two random trees, has git write the difference, and
// applies it: to the first tree, which must become the second, and to a tree in
// which lines were put on top of every file, which must become what git makes of it.
func TestUnifiedLikeGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 12 {
		store, before, after := newDisk(t), newDisk(t), newDisk(t)
		git := func(dir string, stdin []byte, args ...string) (string, error) {
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
			cmd.Env = append(os.Environ(), "GIT_DIR="+store.root+"/.git", "GIT_WORK_TREE="+dir, "GIT_INDEX_FILE="+filepath.Join(store.root, filepath.Base(filepath.Dir(dir))+filepath.Base(dir)),
				"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
			out, err := cmd.Output()
			return string(out), err
		}
		if _, err := git(store.root, nil, "init", "-q"); err != nil {
			t.Skip("git init: ", err)
		}
		for i := range 6 {
			var lines []string
			for n := range r.IntN(40) {
				lines = append(lines, fmt.Sprintf("line %d", []int{n, r.IntN(5)}[r.IntN(2)]))
			}
			name, to := fmt.Sprintf("d%d/file %d", i%2, i), fmt.Sprintf("d%d/file %d", i%2, i)
			if r.IntN(4) == 0 {
				to = fmt.Sprintf("moved/ö%d", i)
			}
			if r.IntN(6) > 0 {
				before.write(t, name, []byte(randomText(r, lines)))
			}
			if r.IntN(6) > 0 {
				after.write(t, to, []byte(randomText(r, mutated(r, lines))))
			}
		}
		tree := func(d disk) string {
			if _, err := git(d.root, nil, "add", "-A", "."); err != nil {
				t.Fatal(err)
			}
			id, err := git(d.root, nil, "write-tree")
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(id)
		}
		diff, err := git(before.root, nil, "diff", fmt.Sprintf("-U%d", r.IntN(4)), "-M", tree(before), tree(after))
		if err != nil || diff == "" {
			t.Fatalf("round %d: %q %v", round, diff, err)
		}
		shifted, gits := newDisk(t), newDisk(t)
		for name, data := range before.files(t) {
			if data != "" {
				data = "top 1\ntop 2\ntop 3\n" + data
			}
			shifted.write(t, name, []byte(data))
			gits.write(t, name, []byte(data))
		}
		if _, err := before.run(t, diff); err != nil || !maps.Equal(before.files(t), after.files(t)) {
			t.Fatalf("round %d: %v\n%s\ngot  %q\nwant %q", round, err, diff, before.files(t), after.files(t))
		}
		if _, err := git(gits.root, []byte(diff), "apply", "-"); err != nil {
			continue
		}
		if _, err := shifted.run(t, diff); err != nil || !maps.Equal(shifted.files(t), gits.files(t)) {
			t.Fatalf("round %d, shifted: %v\n%s\ngot  %q\nwant %q", round, err, diff, shifted.files(t), gits.files(t))
		}
	}
}

// TestUnifiedLikePatch does so for plain diff -u and one file.
func TestUnifiedLikePatch(t *testing.T) {
	if _, err := exec.LookPath("diff"); err != nil {
		t.Skip(err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	for round := range 15 {
		d := newDisk(t)
		var lines []string
		for n := range 5 + r.IntN(30) {
			lines = append(lines, fmt.Sprintf("line %d", []int{n, r.IntN(5)}[r.IntN(2)]))
		}
		before, after := randomText(r, lines), randomText(r, append(mutated(r, lines), "last"))
		d.write(t, "x/f", []byte(before))
		d.write(t, "y/f", []byte(after))
		cmd := exec.Command("diff", "-u", "--label", "f\t2024-01-01 00:00:00", "--label", "f\t2024-01-01 00:00:00", "x/f", "y/f")
		cmd.Dir = d.root
		diff, _ := cmd.Output() // exit code 1: there are differences
		e := newDisk(t)
		e.write(t, "f", []byte(before))
		if _, err := e.run(t, string(diff)); err != nil || e.files(t)["f"] != after {
			t.Fatalf("round %d: %v\n%s\ngot  %q\nwant %q", round, err, diff, e.files(t)["f"], after)
		}
	}
}

// FuzzUnified: never a panic, all or nothing, no file but those that are named, and
// no byte from nowhere.
func FuzzUnified(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
	f.Add([]byte("a\r\nb"), "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n--- a/f\n+++ b/f\n@@ -9 +9 @@\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n")
	f.Add([]byte("b\n\r"), "@@ -0 +0 @@\n ")
	f.Add([]byte(""), "diff --git \"a/f\" \"b/\\303\"\nrename from f\nrename to g\n")
	f.Add([]byte("x\n"), "--- f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n@@ -1,0 +2 @@\n+\n")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if !isUnified(text) {
			text = "--- a/f\n+++ b/f\n" + text
		}
		p, err := Parse(text)
		if err != nil {
			if _, path := err.(*PathError); !path && p != nil {
				t.Fatal(p, err)
			}
			return
		}
		before := bytes.Clone(data)
		pl, err := p.Plan(single(data))
		if !bytes.Equal(before, data) {
			t.Fatal("the file was changed in place")
		}
		if (pl == nil) != (err != nil) {
			t.Fatalf("plan %v with error %v", pl, err)
		}
		if err != nil {
			return
		}
		_ = pl.Summary()
		named := strings.Join(p.Paths(), "\n")
		for _, c := range pl.Changes {
			if !strings.Contains(named, c.Path) || c.SetMode && c.Mode&^fs.ModePerm != 0 {
				t.Errorf("%+v of %q", c, text)
			}
		}
		if s := p.Sections[0]; len(p.Sections) == 1 && s.Kind == Update && len(pl.Changes) == 1 {
			after := bytes.Clone(pl.Changes[0].Data)
			old, _ := splitLines(before)
			if now, _ := splitLines(after); now.unterminated() && slices.ContainsFunc(s.Chunks, func(c Chunk) bool { return c.NoEnd }) {
				after = append(after, old.eol...) // which the patch took away
			}
			checkUntouched(t, s, before, after)
		}
	})
}
