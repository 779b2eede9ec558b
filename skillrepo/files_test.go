package skillrepo

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func paths(files []File) string {
	var list []string
	for _, f := range files {
		list = append(list, f.Path)
	}
	return strings.Join(list, " ")
}

func load(t testing.TB, files map[string]string) (*Skill, string) {
	t.Helper()
	base := realTempDir(t)
	write(t, base, files)
	r := open(t, wide(filepath.Join(base, "root")))
	s, ok := r.Get(t.Context(), "s")
	if !ok {
		t.Fatal(r.Diagnostics())
	}
	return s, filepath.Join(base, "root/s")
}

func TestFiles(t *testing.T) {
	s, _ := load(t, map[string]string{
		"root/s/SKILL.md": md("s", "d"), "root/s/b.txt": "bb", "root/s/a/x": "x", "root/s/a.md": "a", "root/s/.hidden": "h", "root/s/empty/": "",
		"root/s/.git/c": "x", "root/s/a/node_modules/m.js": "x", "root/s/__pycache__/x": "x", "root/s/.DS_Store": "x", "root/s/a/.DS_Store": "x", "root/s/target/t": "t",
		"root/s/in": "-> a/x", "root/s/chain": "-> in", "root/s/out": "-> ../../secret", "secret": "secret", "root/s/gone": "-> nothing", "root/s/dir": "-> a",
		"root/s/nested/n/SKILL.md": md("n", "d"), "root/s/back": "-> ../s/b.txt",
	})
	l, err := s.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := paths(l.Files), ".hidden SKILL.md a.md a/x b.txt back chain in nested/n/SKILL.md target/t"; got != want {
		t.Errorf("files %q; want %q", got, want)
	}
	if got, want := strings.Join(l.Dirs, " "), "a empty nested nested/n target"; got != want {
		t.Errorf("directories %q; want %q", got, want)
	}
	for _, want := range []string{`"out" is left out: leads outside`, `"gone" is left out`, `"dir" is left out: is not a regular file`} {
		if !strings.Contains(messages(l.Diagnostics), want) {
			t.Errorf("no diagnostic %q in %v", want, l.Diagnostics)
		}
	}
	if len(l.Diagnostics) != 3 || !l.publishable() {
		t.Errorf("%v, publishable %v", l.Diagnostics, l.publishable())
	}
}

func TestLimitsOfPublishing(t *testing.T) {
	big := strings.Repeat("x", maxPublishedFile)
	many := map[string]string{"root/s/SKILL.md": md("s", "d")}
	for i := range maxPublishedFiles {
		many[fmt.Sprintf("root/s/%d", i)] = ""
	}
	tests := []struct {
		name  string
		files map[string]string
		diag  string
	}{
		{"a file of 4 MiB", map[string]string{"root/s/SKILL.md": md("s", "d"), "root/s/a": big}, ""},
		{"a file over it", map[string]string{"root/s/SKILL.md": md("s", "d"), "root/s/a": big + "x"}, `"a" has 4194305 bytes`},
		{"together over 16 MiB", map[string]string{"root/s/SKILL.md": md("s", "d"), "root/s/a": big, "root/s/b": big, "root/s/c": big, "root/s/d": big}, "bytes; skills of more than 16777216"},
		{"too many files", many, "513 files; skills of more than 512"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := load(t, tt.files)
			l, err := s.Files(t.Context())
			if err != nil || !strings.Contains(messages(l.Diagnostics), tt.diag) || l.publishable() != (tt.diag == "") {
				t.Errorf("%v, %v, publishable %v", l.Diagnostics, err, l.publishable())
			}
		})
	}
}

func TestDigest(t *testing.T) {
	s, dir := load(t, map[string]string{"root/s/SKILL.md": md("s", "d"), "root/s/a/x": "hello", "root/s/a.md": "\xff", "root/s/link": "-> a/x"})
	lines := ""
	for _, p := range []string{"SKILL.md", "a.md", "a/x", "link"} {
		b, err := os.ReadFile(filepath.Join(dir, p))
		if err != nil {
			t.Fatal(err)
		}
		lines += fmt.Sprintf("%x %d %s\n", sha256.Sum256(b), len(b), p)
	}
	want := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(lines)))
	for range 2 { // hashed, then remembered
		m, err := s.Manifest(t.Context())
		if err != nil || m.Digest != want {
			t.Fatalf("%v, %v; want %s", m, err, want)
		}
		if m.Files[2].Digest != fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("hello"))) || m.Files[2].Size != 5 {
			t.Errorf("%+v", m.Files[2])
		}
	}
	// Any change shows at once, even one that keeps size and modification time.
	info, err := os.Stat(filepath.Join(dir, "a/x"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"a/x": "HELLO"})
	if err := os.Chtimes(filepath.Join(dir, "a/x"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Digest(t.Context()); err != nil || got == want {
		t.Errorf("the digest did not change: %v", err)
	}
}

func TestUnreadableFileIsLeftOut(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("nothing is unreadable to root")
	}
	s, dir := load(t, map[string]string{"root/s/SKILL.md": md("s", "d"), "root/s/a": "a"})
	if err := os.Chmod(filepath.Join(dir, "a"), 0); err != nil {
		t.Fatal(err)
	}
	m, err := s.Manifest(t.Context())
	if err != nil || paths(m.Files) != "SKILL.md" || !strings.Contains(messages(m.Diagnostics), `"a" is left out`) {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestResource(t *testing.T) {
	s, dir := load(t, map[string]string{
		"root/s/SKILL.md": md("s", "d"), "root/s/docs/x.md": "x", "root/s/in": "-> docs/x.md", "root/s/ref": "-> docs",
		"root/s/out": "-> ../../secret", "secret": "secret", "root/s/up": "-> ..", "root/s/dangling": "-> ../nowhere", "root/s/gone": "-> nowhere",
		"root/s/.git/config": "c", "root/s/.DS_Store": "d", "root/s/loop": "-> loop", "root/s/abs": "-> /etc", "root/s/git": "-> .git/config",
	})
	tests := []struct {
		path string
		want error // nil: found
	}{
		{"docs/x.md", nil}, {"./docs//x.md", nil}, {"in", nil}, {"ref/x.md", nil}, {filepath.Join(dir, "docs/x.md"), nil},
		{"missing", fs.ErrNotExist}, {"docs/missing", fs.ErrNotExist}, {"docs/x.md/y", fs.ErrNotExist}, {"gone", fs.ErrNotExist},
		{".git/config", fs.ErrNotExist}, {".DS_Store", fs.ErrNotExist}, {"git", fs.ErrNotExist}, {"a\x00b", fs.ErrNotExist}, {"\xff", fs.ErrNotExist},
		{"docs", ErrDirectory}, {"", ErrDirectory}, {".", ErrDirectory}, {"ref", ErrDirectory},
		{"out", ErrOutside}, {"up/s2", ErrOutside}, {"up", ErrOutside}, {"dangling", ErrOutside}, {"abs/passwd", ErrOutside},
		{"../s/docs/x.md", ErrOutside}, {"docs/../docs/x.md", ErrOutside}, {"/etc/passwd", ErrOutside}, {dir + "x/y", ErrOutside}, {"/nowhere/x", ErrOutside},
	}
	for _, tt := range tests {
		f, err := s.Resource(tt.path)
		if tt.want == nil {
			if b, rerr := s.ReadFile(f, 10); err != nil || rerr != nil || string(b) != "x" {
				t.Errorf("%q: %q, %v, %v", tt.path, b, err, rerr)
			}
		} else if !errors.Is(err, tt.want) {
			t.Errorf("%q: %v; want %v", tt.path, err, tt.want)
		}
	}
	if _, err := s.Resource("loop"); err == nil {
		t.Error("a loop of links was found to be a file")
	}
	if b, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(b) != "secret" {
		t.Errorf("the system itself does not follow the link: %v", err)
	}
}

func TestReadFileIsBounded(t *testing.T) {
	s, _ := load(t, map[string]string{"root/s/SKILL.md": md("s", "d"), "root/s/a": "12345"})
	f, err := s.Resource("a")
	if err != nil || f.Size != 5 {
		t.Fatal(f, err)
	}
	if _, err := s.ReadFile(f, 4); err == nil || !strings.Contains(err.Error(), "exceeds 4 bytes") {
		t.Error(err)
	}
}

// A link put in the place of a file after it was looked up is not followed.
func TestSwappedLinkIsNotFollowed(t *testing.T) {
	s, dir := load(t, map[string]string{"root/s/SKILL.md": md("s", "d"), "root/s/a": "mine", "secret": "secret"})
	f, err := s.Resource("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"a": "-> ../../secret"})
	if b, err := s.ReadFile(f, 100); err == nil {
		t.Errorf("read %q", b)
	}
}

// Nor is one put in the place of the skill's own directory, or of one above it.
func TestSwappedDirectoryIsNotFollowed(t *testing.T) {
	for _, swap := range []string{"root/s", "root"} {
		s, dir := load(t, map[string]string{
			"root/s/SKILL.md": md("s", "d"), "root/s/a": "mine", "else/SKILL.md": md("s", "d"), "else/a": "secret", "else/s/SKILL.md": md("s", "d"), "else/s/a": "secret",
		})
		base := filepath.Dir(filepath.Dir(dir))
		if err := os.Rename(filepath.Join(base, swap), filepath.Join(base, "away")); err != nil {
			t.Fatal(err)
		}
		write(t, base, map[string]string{swap: "-> " + filepath.Join(base, "else")})
		if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != "secret" {
			t.Fatalf("the system itself does not follow the link: %v", err)
		}
		if l, err := s.Files(t.Context()); err == nil {
			t.Errorf("%s: listed %v", swap, l.Files)
		}
		if f, err := s.Resource("a"); !errors.Is(err, ErrOutside) {
			t.Errorf("%s: found %v, %v", swap, f, err)
		}
		if b, err := s.Body(); err == nil {
			t.Errorf("%s: read %q", swap, b)
		}
	}
}
