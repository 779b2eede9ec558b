package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

func grep(t testing.TB, tree Tree, q Query) string {
	t.Helper()
	got, err := Grep(context.Background(), tree, q)
	if err != nil {
		return "Error: " + err.Error()
	}
	return got
}

func TestGrep(t *testing.T) {
	long := strings.Repeat("x", 300) + "é" + strings.Repeat("y", 300) + "needle" + strings.Repeat("z", 600)
	tr := tree(t,
		"new.go", "package a\n\nfunc one() {\n\treturn // TODO\n}\n\nfunc two() { return }\n",
		"sub/mid.py", "import a\r\ndef one():\r\n    return 1\r\nTODO",
		"sub/.env", "TOKEN=return\n",
		"node_modules/x.go", "return",
		"old.txt", "\ufeffreturn\nlast return",
		".gitignore", "node_modules\n",
		"bin", "return\x00",
		"long.txt", long+"\nnaïve ünïcode_1\n",
		"bad.txt", "caf\xe9 bar\n",
		"empty", "",
	)
	tests := []struct {
		name string
		q    Query
		want string
	}{
		{"files, newest first", Query{Pattern: "return"}, "new.go\nsub/mid.py\nold.txt"},
		{"count", Query{Pattern: "return", Mode: Count}, "new.go:2\nsub/mid.py:1\nold.txt:2"},
		{"content", Query{Pattern: "return", Mode: Content},
			"new.go:4:\treturn // TODO\nnew.go:7:func two() { return }\nsub/mid.py:3:    return 1\nold.txt:1:return\nold.txt:2:last return"},
		{"limit", Query{Pattern: "return", Limit: 1}, "new.go\n\n[... 2 more files, next offset 2 ...]"},
		{"offset", Query{Pattern: "return", Limit: 1, Offset: 2}, "sub/mid.py\n\n[... 1 more files, next offset 3 ...]"},
		{"past the end", Query{Pattern: "return", Offset: 4}, "Error: offset 4 is past the end (3 files)."},
		{"past the end of matches", Query{Pattern: "return", Offset: 6, Mode: Content}, "Error: offset 6 is past the end (5 matches)."},
		{"content page", Query{Pattern: "return", Mode: Content, Offset: 2, Limit: 2},
			"new.go:7:func two() { return }\nsub/mid.py:3:    return 1\n\n[... 2 more matches, next offset 4 ...]"},
		{"context", Query{Pattern: "TODO|two", Mode: Content, Context: 1},
			"new.go-3-func one() {\nnew.go:4:\treturn // TODO\nnew.go-5-}\nnew.go-6-\nnew.go:7:func two() { return }\n--\nsub/mid.py-3-    return 1\nsub/mid.py:4:TODO"},
		{"stretches that do not touch", Query{Pattern: "package|two", Mode: Content, Context: 1},
			"new.go:1:package a\nnew.go-2-\n--\nnew.go-6-\nnew.go:7:func two() { return }"},
		{"a match beyond the limit is context", Query{Pattern: "func|return // ", Mode: Content, Context: 1, Limit: 1},
			"new.go-2-\nnew.go:3:func one() {\nnew.go-4-\treturn // TODO\n\n[... 2 more matches, next offset 2 ...]"},
		{"a match before the offset is context", Query{Pattern: "func one|return // ", Mode: Content, Context: 1, Offset: 2},
			"new.go-3-func one() {\nnew.go:4:\treturn // TODO\nnew.go-5-}"},
		{"CR is not part of a line", Query{Pattern: `:$`, Mode: Content}, "sub/mid.py:2:def one():"},
		{"BOM is not part of a line", Query{Pattern: `^return`, Mode: Content}, "old.txt:1:return"},
		{"hidden", Query{Pattern: "TOKEN", Hidden: true}, "sub/.env"},
		{"no_ignore", Query{Pattern: "return", NoIgnore: true, Type: "go"}, "new.go\nnode_modules/x.go"},
		{"an ignored directory as path", Query{Pattern: "return", Path: "node_modules"}, "node_modules/x.go"},
		{"a hidden file as path", Query{Pattern: "return", Path: "sub/.env", Include: "*.go"}, "sub/.env"},
		{"a binary file as path", Query{Pattern: "return", Path: "bin"}, "No matches found\nFiles searched: 0. Skipped: 1 binary."},
		{"include", Query{Pattern: "return", Include: "*.{go,py}"}, "new.go\nsub/mid.py"},
		{"include excludes", Query{Pattern: "return", Include: "!*.{go,py}"}, "old.txt"},
		{"include with a slash", Query{Pattern: "return", Include: "**/*.py"}, "sub/mid.py"},
		{"include below path", Query{Pattern: "return", Include: "./mid.*", Path: "sub"}, "sub/mid.py"},
		{"case", Query{Pattern: "todo"}, "No matches found\nFiles searched: 6. Skipped: 1 ignored, 2 hidden, 1 binary.\n" +
			"Set no_ignore to search ignored files, hidden to search names that begin with a dot."},
		{"without case", Query{Pattern: "todo", CaseInsensitive: true}, "new.go\nsub/mid.py"},
		{"nothing skipped", Query{Pattern: "todo", Path: "new.go"}, "No matches found\nFiles searched: 1. Skipped: none."},
		{"filtered", Query{Pattern: "todo", Type: "py", Path: "sub"}, "No matches found\nFiles searched: 1. Skipped: 1 hidden.\n" +
			"Set no_ignore to search ignored files, hidden to search names that begin with a dot."},
		{"words of every script", Query{Pattern: `^\w+ \w+$`, Mode: Content, Path: "long.txt"}, "long.txt:2:naïve ünïcode_1"},
		{"invalid UTF-8 is shown", Query{Pattern: "bar", Mode: Content}, "bad.txt:1:caf\ufffd bar"},
		{"a long line", Query{Pattern: "needle", Mode: Content},
			"long.txt:1:[...]" + strings.Repeat("y", 100) + "needle" + strings.Repeat("z", 394) + "[...]"},
		{"a long line as context", Query{Pattern: "naïve", Mode: Content, Context: 1},
			"long.txt-1-" + strings.Repeat("x", 300) + "é" + strings.Repeat("y", 198) + "[...]\nlong.txt:2:naïve ünïcode_1"},
		{"a line feed", Query{Pattern: `a\nb`}, "Error: pattern is not valid: it can only match across lines, and lines are matched one by one"},
		{"a bad pattern", Query{Pattern: `a(`}, "Error: pattern is not valid: missing closing ): `a(`"},
		{"a bad include", Query{Pattern: `a`, Include: "*.{go"}, "Error: include is not a valid glob: missing closing }"},
		{"a bad type", Query{Pattern: `a`, Type: "golang"}, `Error: type "golang" is not known.`},
		{"multiline", Query{Pattern: `one\(.*return 1`, Multiline: true}, "sub/mid.py"},
		{"multiline lines", Query{Pattern: `def one.*?return`, Multiline: true, Mode: Content, Context: 1},
			"sub/mid.py-1-import a\nsub/mid.py:2:def one():\nsub/mid.py:3:    return 1\nsub/mid.py-4-TODO"},
		{"multiline anchors and CRLF", Query{Pattern: `:$\n^ +r`, Multiline: true, Mode: Count}, "sub/mid.py:1"},
		{"multiline matches of a line", Query{Pattern: `e`, Multiline: true, Mode: Content, Path: "old.txt"},
			"old.txt:1:return\nold.txt:2:last return"},
		{"multiline page of a line", Query{Pattern: `n|l`, Multiline: true, Mode: Content, Path: "old.txt", Offset: 2, Limit: 1},
			"old.txt:2:last return\n\n[... 1 more matches, next offset 3 ...]"},
		{"multiline empty matches", Query{Pattern: `^`, Multiline: true, Mode: Count, Path: "new.go"}, "new.go:7"},
		{"empty lines", Query{Pattern: `^$`, Mode: Count}, "new.go:2"},
		{"empty multiline", Query{Pattern: `x*`, Multiline: true, Path: "empty"}, "No matches found\nFiles searched: 1. Skipped: none."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := grep(t, tr, test.q); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// .git is never searched, links are not followed, other names are escaped.
func TestGrepLeavesOut(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, "secret", "needle")
	dir := t.TempDir()
	write(t, dir, "a\nb\xff", "needle", ".git/config", "needle", "d/.git/x", "needle", ".hidden/x", "needle")
	for _, link := range []string{"link", "d/link"} {
		if err := os.Symlink(outside, filepath.Join(dir, link)); err != nil {
			t.Skip("no links here")
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "link", "secret")); err != nil || string(data) != "needle" {
		t.Fatalf("the link leads nowhere: %v", err)
	}
	tr := openRoot(t, dir)
	q := Query{Pattern: "needle", Hidden: true, NoIgnore: true}
	if got := grep(t, tr, q); got != "a\\x0ab\\xff\n.hidden/x" {
		t.Errorf("got %q", got)
	}
	q.Pattern = "nothing"
	if got := grep(t, tr, q); !strings.HasPrefix(got, "No matches found\nFiles searched: 2. Skipped: 2 hidden.") {
		t.Errorf("got %q", got)
	}
	q.Path, q.Pattern = ".git", "needle"
	if got := grep(t, tr, q); got != ".git/config" {
		t.Errorf(".git as path: %q", got)
	}
}

func TestGrepOrder(t *testing.T) {
	dir := t.TempDir()
	names := []string{"b", "a", "c/d", "c.d", "Z"}
	when := time.Now()
	for i, name := range names {
		write(t, dir, name, "x")
		at := when
		if i == 3 {
			at = when.Add(100) // nanoseconds
		}
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := grep(t, openRoot(t, dir), Query{Pattern: "x"}), "c.d\nZ\na\nb\nc/d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestGrepManyHits has more hits than workers keep.
func TestGrepManyHits(t *testing.T) {
	testlevel.NotQuick(t, "searches many hits")
	dir := t.TempDir()
	var files []string
	for i := range 4500 {
		files = append(files, fmt.Sprintf("d%d/%05d", i%7, i), "x")
	}
	write(t, dir, files...)
	tr := openRoot(t, dir)
	want := files[0] + "\n" + files[2] + "\n\n[... 4498 more files, next offset 3 ...]"
	for _, workers := range []int{1, 2, 7} {
		if got := grep(t, tr, Query{Pattern: "x", Limit: 2, Workers: workers}); got != want {
			t.Errorf("%d workers: %q", workers, got)
		}
	}
	if got := grep(t, tr, Query{Pattern: "x", Offset: 4500}); got != files[len(files)-2] {
		t.Errorf("last page: %q", got)
	}
}

func TestGrepLongLinesAndFiles(t *testing.T) {
	line := strings.Repeat("a", maxLine)
	tr := tree(t,
		"far", line+"needle\nnext needle\n", // the needle is beyond the first MiB
		"near", line[6:]+"needle and more"+line+"\nshort\n",
		"many", strings.Repeat("some words of a line\n", 50_000)+"needle",
		"large", strings.Repeat("some words of a line\n", maxText/21)+strings.Repeat("\n", 21),
	)
	if got := grep(t, tr, Query{Pattern: "needle", Mode: Count}); got != "far:1\nnear:1\nmany:1" {
		t.Errorf("got %q", got)
	}
	want := "far:2:next needle\nnear:1:[...]" + strings.Repeat("a", 100) + "needle\nmany:50001:needle"
	if got := grep(t, tr, Query{Pattern: "needle", Mode: Content}); got != want {
		t.Errorf("got %q", got)
	}
	if got := grep(t, tr, Query{Pattern: "short", Mode: Content}); got != "near:2:short" {
		t.Errorf("got %q", got)
	}
	q := Query{Pattern: `line\nsome \w+ of`, Multiline: true, Mode: Count}
	if got := grep(t, tr, q); got != "many:49999" {
		t.Errorf("got %q", got)
	}
	q = Query{Pattern: "nothing", Multiline: true, Path: "."}
	if got := grep(t, tr, q); !strings.Contains(got, "Files searched: 3. Skipped: 1 too large.") {
		t.Errorf("got %q", got)
	}
}

// slowTree never comes to an end: every directory holds another.
type slowTree struct{}

func (slowTree) Open(string) (Dir, File, error)    { return slowDir{}, nil, nil }
func (slowDir) ReadDir() ([]Entry, error)          { return []Entry{{"d", Directory}, {"f", Regular}}, nil }
func (slowDir) OpenDir(string) (Dir, error)        { time.Sleep(time.Millisecond); return slowDir{}, nil }
func (slowDir) OpenFile(name string) (File, error) { return slowFile{strings.NewReader(name)}, nil }
func (slowDir) Close() error                       { return nil }

type slowDir struct{}
type slowFile struct{ *strings.Reader }

func (slowFile) Close() error       { return nil }
func (slowFile) ModTime() time.Time { return time.Time{} }

func TestGrepTimeout(t *testing.T) {
	q := Query{Pattern: "nothing", Timeout: 200 * time.Millisecond}
	if got, want := grep(t, slowTree{}, q), "Error: Search timed out after 0.2 s."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	q.Pattern, q.Limit = "f", 1
	got := grep(t, slowTree{}, q)
	if !strings.HasPrefix(got, "d/") || !strings.HasSuffix(got, "\n\n[... stopped after 0.2 s, incomplete ...]") {
		t.Errorf("got %q", got)
	}
}

func TestGrepCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := Grep(ctx, slowTree{}, Query{Pattern: "f"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// lockedTree has a directory that cannot be opened, one that cannot be read to
// its end, and files that cannot be opened or have just gone.
type lockedTree struct{}

func (lockedTree) Open(string) (Dir, File, error) { return lockedDir{}, nil, nil }

type lockedDir struct{ below bool }

func (d lockedDir) ReadDir() ([]Entry, error) {
	if d.below {
		return []Entry{{"locked", Regular}, {"gone", Regular}, {"fifo", Special}, {"link", Link}}, fs.ErrPermission
	}
	return []Entry{{"dir", Directory}, {"locked", Directory}, {"gone", Directory}}, nil
}

func (d lockedDir) OpenDir(name string) (Dir, error) {
	if name == "dir" {
		return lockedDir{true}, nil
	}
	_, err := d.OpenFile(name)
	return nil, err
}

func (lockedDir) OpenFile(name string) (File, error) {
	if name == "locked" {
		return nil, fs.ErrPermission
	}
	return nil, fs.ErrNotExist
}

func (lockedDir) Close() error { return nil }

func TestGrepCountsUnreadable(t *testing.T) {
	if got, want := grep(t, lockedTree{}, Query{Pattern: "x"}), "No matches found\nFiles searched: 0. Skipped: 3 unreadable."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, err := list(t, lockedTree{}, ListQuery{}); err != nil || got != "./\n  dir/\n    fifo?\n    gone\n    link@\n    locked\n  gone/\n  locked/" {
		t.Errorf("list: %q, %v", got, err)
	}
}

// A search that is stopped in the middle of a hard pattern ends soon.
func TestGrepStopsWithinAFile(t *testing.T) {
	hard := `(?:[ab]{0,30}a[ab]{30}){20}c` // every state is new, and large
	data := []byte(randomText(rand.New(rand.NewPCG(5, 6)), []string{"a", "b"}, maxLine))
	tr := memoryTree{data}
	for _, multiline := range []bool{false, true} {
		start := time.Now()
		_, err := Grep(context.Background(), tr, Query{Pattern: hard, Multiline: multiline, Timeout: 100 * time.Millisecond})
		var late *TimeoutError
		if !errors.As(err, &late) || time.Since(start) > 20*time.Second {
			t.Errorf("multiline %v: %v after %v", multiline, err, time.Since(start))
		}
	}
}

// memoryTree is one file.
type memoryTree struct{ data []byte }

func (m memoryTree) Open(string) (Dir, File, error) {
	return nil, memoryFile{bytes.NewReader(m.data)}, nil
}

type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error       { return nil }
func (memoryFile) ModTime() time.Time { return time.Time{} }

// countedTree counts the handles that are open.
type countedTree struct {
	Tree
	t    *testing.T
	open chan int // one value, the count
	most *int
}

func (c countedTree) Open(p string) (Dir, File, error) {
	d, f, err := c.Tree.Open(p)
	if d != nil {
		return c.dir(d), nil, err
	}
	return nil, f, err
}

func (c countedTree) dir(d Dir) Dir {
	n := <-c.open + 1
	*c.most = max(*c.most, n)
	c.open <- n
	return countedDir{d, c}
}

type countedDir struct {
	Dir
	tree countedTree
}

func (d countedDir) OpenDir(name string) (Dir, error) {
	sub, err := d.Dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return d.tree.dir(sub), nil
}

func (d countedDir) Close() error {
	d.tree.open <- <-d.tree.open - 1
	return d.Dir.Close()
}

func TestGrepClosesWhatItOpens(t *testing.T) {
	var files []string
	for i := range 300 {
		files = append(files, fmt.Sprintf("a%d/b%d/c%d/f", i%10, i%20, i), "x")
	}
	c := countedTree{tree(t, files...), t, make(chan int, 1), new(int)}
	c.open <- 0
	grep(t, c, Query{Pattern: "x", Workers: 4})
	if n := <-c.open; n != 0 {
		t.Errorf("%d directories are still open", n)
	}
	if *c.most > 4*4+2 {
		t.Errorf("%d directories were open at a time", *c.most)
	}
}

func TestErrorHints(t *testing.T) {
	for pattern, want := range map[string]string{
		`a(?=b)`: re2Hint, `a(?!b)`: re2Hint, `(?<=a)b`: re2Hint, `(?<!a)b`: re2Hint, `(a)\1`: re2Hint,
		`a\nb`: multilineHint, "a\nb": multilineHint, `[\n]`: multilineHint, `(a|b)\n+`: multilineHint, `\n|x\ny`: multilineHint,
		`a**`: "", `[`: "",
	} {
		_, err := compilePattern(pattern, false, false)
		var bad *PatternError
		if !errors.As(err, &bad) || bad.Hint() != want {
			t.Errorf("%q: %v, hint %q", pattern, err, bad.Hint())
		}
	}
	for _, pattern := range []string{`a|b\n`, `a\n?`, `\s`, `[^a]`} {
		if _, err := compilePattern(pattern, false, false); err != nil {
			t.Errorf("%q: %v", pattern, err)
		}
	}
	for _, large := range []string{strings.Repeat("a", maxPatternBytes+1), strings.Repeat(`[\W]`, 500), strings.Repeat(`[ab]{1000}`, 110)} {
		if _, err := compilePattern(large, false, false); !errors.Is(err, errTooLarge) {
			t.Errorf("%.20s: %v", large, err)
		}
	}
	_, err := parseType("golang")
	if hint := err.(*TypeError).Hint(); !strings.Contains(hint, "go, haskell") {
		t.Error(hint)
	}
	if hint := (&TimeoutError{}).Hint(); hint == "" {
		t.Error("no hint")
	}
}
