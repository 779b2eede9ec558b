package skillrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestResolve(t *testing.T) {
	base := realTempDir(t)
	write(t, base, map[string]string{
		"a/b/f": "x", "a/up": "-> ..", "a/f": "-> b/f", "a/abs": "-> " + base + "/a/b", "a/self": "-> " + base, "a/dots": "-> ./b/../b/./f",
		"a/out": "-> ../..", "a/climb": "-> ../../../../../../../..", "a/etc": "-> /etc", "a/loop": "-> loop", "a/gone": "-> b/none/x", "a/goneout": "-> none/../../../x", "a/empty": "-> b//f",
	})
	for i := range maxLinkHops + 2 {
		to := fmt.Sprintf("-> hop%d", i+1)
		if i == maxLinkHops+1 {
			to = "-> b/f"
		}
		write(t, base, map[string]string{fmt.Sprintf("a/hop%d", i): to})
	}
	tr := tree{fsys: os.DirFS(base), base: base}
	tests := []struct{ dir, rel, want, fail string }{
		{".", "a/b/f", "a/b/f", ""}, {"a", "b/f", "a/b/f", ""}, {"a", "f", "a/b/f", ""}, {".", ".", ".", ""}, {"a", ".", "a", ""},
		{"a", "up/a/up/a/f", "a/b/f", ""}, {"a", "abs/f", "a/b/f", ""}, {"a", "self/a/f", "a/b/f", ""}, {"a", "self", ".", ""}, {"a", "dots", "a/b/f", ""}, {"a", "empty", "a/b/f", ""},
		{"a", "out", "", "leads outside"}, {"a", "climb", "", "leads outside"}, {"a", "etc/passwd", "", "leads outside"}, {"a", "goneout", "", "leads outside"},
		{"a", "loop", "", "too many links"}, {"a", "hop0", "", "too many links"}, {"a", "hop2", "a/b/f", ""},
		{"a", "gone", "a/b/none/x", "no such file"}, {"a", "none/x", "a/none/x", "no such file"}, {"a", "f/x", "a/b/f", "does not exist"}, {"a", "\xff", "", "invalid argument"},
	}
	for _, tt := range tests {
		got, info, err := tr.resolve(tt.dir, tt.rel)
		if got != tt.want || (err == nil) != (tt.fail == "") || err != nil && !strings.Contains(err.Error(), tt.fail) || (info == nil) != (err != nil) {
			t.Errorf("%s + %s: %q, %v; want %q, %q", tt.dir, tt.rel, got, err, tt.want, tt.fail)
		}
	}
}

// What resolve allows, os.Root allows too; and it never returns a path with a link in it.
func FuzzResolve(f *testing.F) {
	f.Add("b/l/f", "../b", "x")
	f.Add("l", "l2", "../../x")
	f.Add("l/l", ".", "..")
	f.Fuzz(func(t *testing.T, rel, to, to2 string) {
		base := realTempDir(t)
		write(t, base, map[string]string{"w/a/b/f": "x", "secret": "s"})
		_ = os.Symlink(to, filepath.Join(base, "w/a/l"))
		_ = os.Symlink(to2, filepath.Join(base, "w/a/b/l"))
		ws := filepath.Join(base, "w")
		got, _, err := tree{fsys: os.DirFS(ws), base: ws}.resolve("a", rel)
		if err != nil {
			return
		}
		if real, err := filepath.EvalSymlinks(filepath.Join(ws, filepath.FromSlash(got))); err != nil || real != filepath.Join(ws, filepath.FromSlash(got)) {
			t.Errorf("%q is at %q, which is really %q (%v)", rel, got, real, err)
		}
		if !within(ws, filepath.Join(ws, got)) {
			t.Errorf("%q is at %q, outside", rel, got)
		}
	})
}

func TestTreeAtTheTop(t *testing.T) {
	tr, p, err := Root{FS: os.DirFS("/"), Path: "a/b", Dir: "/a/b"}.open()
	if err != nil || p != "a/b" || tr.base != "" || tr.abs("a/b") != "/a/b" || tr.abs(".") != "/" {
		t.Errorf("%+v, %q, %v", tr, p, err)
	}
	if parts, abs, err := tr.target("/etc/x"); err != nil || !abs || strings.Join(parts, "|") != "etc|x" {
		t.Errorf("%q, %v, %v", parts, abs, err)
	}
	tr, p, err = Root{FS: os.DirFS("/w"), Dir: "/w/"}.open()
	if err != nil || p != "." || tr.abs(".") != "/w" || tr.abs("x") != "/w/x" {
		t.Errorf("%+v, %q, %v", tr, p, err)
	}
}

func TestTooManyEntries(t *testing.T) {
	fsys := fstest.MapFS{"s/SKILL.md": {Data: []byte(md("s", "d"))}}
	for i := range maxEntries {
		fsys[fmt.Sprintf("s/%d/%d", i%7, i)] = &fstest.MapFile{}
	}
	r := open(t, Root{FS: fsys, Dir: "/m"})
	l, err := r.List()[0].Files(t.Context())
	if err != nil || len(l.Files) > maxEntries || !strings.Contains(messages(l.Diagnostics), "more than 50000 entries; the rest is left out") {
		t.Errorf("%d files, %v, %v", len(l.Files), l.Diagnostics, err)
	}
	wide := fstest.MapFS{}
	for i := range maxEntries + 1 {
		wide[fmt.Sprintf("f%d", i)] = &fstest.MapFile{}
	}
	if got := messages(open(t, Root{FS: wide, Dir: "/m"}).Diagnostics()); !strings.Contains(got, "more than 50000 entries; some were not looked at") {
		t.Error(got)
	}
}

// faulty fails on chosen paths.
type faulty struct {
	fstest.MapFS
	open, read string // paths whose Open, or whose reading, fails
}

var errDisk = errors.New("input/output error")

func (f faulty) Open(name string) (fs.File, error) {
	if name == f.open {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errDisk}
	}
	file, err := f.MapFS.Open(name)
	if err == nil && name == f.read {
		return brokenFile{file}, nil
	}
	return file, err
}

type brokenFile struct{ fs.File }

func (brokenFile) Read([]byte) (int, error)           { return 0, errDisk }
func (brokenFile) ReadDir(int) ([]fs.DirEntry, error) { return nil, errDisk }

func TestFailingDisk(t *testing.T) {
	files := fstest.MapFS{"a/SKILL.md": {Data: []byte(md("a", "d"))}, "a/f": {}, "a/sub/g": {}, "b/SKILL.md": {Data: []byte(md("b", "d"))}}
	tests := []struct{ name, open, read, skills, diag string }{
		{"SKILL.md cannot be opened", "a/SKILL.md", "", "b", "SKILL.md cannot be read: input/output error"},
		{"SKILL.md cannot be read", "", "a/SKILL.md", "b", "SKILL.md cannot be read: input/output error"},
		{"a directory cannot be opened", "a", "", "b", "the directory cannot be searched: input/output error"},
		{"a directory cannot be read", "", "a", "b", "the directory cannot be searched: input/output error"},
		{"the root cannot be read", ".", "", "", "the directory cannot be searched: input/output error"},
	}
	for _, tt := range tests {
		r := open(t, Root{FS: faulty{files, tt.open, tt.read}, Dir: "/m"})
		if names(r) != tt.skills || messages(r.Diagnostics()) != tt.diag+"\n" {
			t.Errorf("%s: %q, %v", tt.name, names(r), r.Diagnostics())
		}
	}
	for name, f := range map[string]faulty{"open": {files, "a/f", ""}, "read": {files, "", "a/f"}} {
		s := open(t, Root{FS: f, Dir: "/m"}).List()[0]
		m, err := s.Manifest(t.Context())
		if err != nil || paths(m.Files) != "SKILL.md sub/g" || messages(m.Diagnostics) != "\"f\" is left out: input/output error\n" {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	s := open(t, Root{FS: faulty{files, "a/sub", ""}, Dir: "/m"}).List()[0]
	l, err := s.Files(t.Context())
	if err != nil || paths(l.Files) != "SKILL.md f" || messages(l.Diagnostics) != "the directory \"sub\" is left out: it cannot be read: input/output error\n" {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestNamesThatAreNotUTF8(t *testing.T) {
	s, dir := load(t, map[string]string{"root/s/SKILL.md": md("s", "d")})
	if err := os.WriteFile(filepath.Join(dir, "\xff"), nil, 0o644); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "\xfe"), 0o755); err != nil {
		t.Skip(err)
	}
	l, err := s.Files(t.Context())
	if err != nil || paths(l.Files) != "SKILL.md" || strings.Count(messages(l.Diagnostics), "is not valid UTF-8") != 2 {
		t.Errorf("%+v, %v", l, err)
	}
	if got := messages(open(t, wide(filepath.Dir(dir))).Diagnostics()); !strings.Contains(got, "not valid UTF-8 and it is not searched") {
		t.Error(got)
	}
}

// A new directory with the old SKILL.md moved into it is the skill from then on.
func TestRebuiltDirectory(t *testing.T) {
	base := realTempDir(t)
	write(t, base, map[string]string{"s/SKILL.md": md("s", "d"), "s/old": "", "new/new": ""})
	r := open(t, wide(base))
	time.Sleep(50 * time.Millisecond)
	r.Get(t.Context(), "unknown") // remembers the skill
	for _, mv := range [][2]string{{"s/SKILL.md", "new/SKILL.md"}, {"s", "away"}, {"new", "s"}} {
		if err := os.Rename(filepath.Join(base, mv[0]), filepath.Join(base, mv[1])); err != nil {
			t.Fatal(err)
		}
	}
	s, ok := r.Get(t.Context(), "s")
	if !ok {
		t.Fatal("unknown")
	}
	if l, err := s.Files(t.Context()); err != nil || paths(l.Files) != "SKILL.md new" {
		t.Errorf("%+v, %v", l, err)
	}
}
