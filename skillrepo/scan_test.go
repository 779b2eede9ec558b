package skillrepo

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDiscovery(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  string
		diag  string
	}{
		{"none", nil, "", ""},
		{"children", map[string]string{"b/SKILL.md": md("b", "d"), "a/SKILL.md": md("a", "d"), "x.md": "x"}, "a b", ""},
		{"depth four and no deeper", map[string]string{"1/2/3/4/SKILL.md": md("four", "d"), "1/2/3/4/5/SKILL.md": md("five", "d")}, "four", ""},
		{"a root that is a skill", map[string]string{"SKILL.md": md("top", "d"), "in/SKILL.md": md("in", "d")}, "in top", ""},
		{"inside other skills", map[string]string{"a/SKILL.md": md("a", "d"), "a/sub/b/SKILL.md": md("b", "d")}, "a b", ""},
		{"not searched", map[string]string{".git/SKILL.md": md("g", "d"), "node_modules/x/SKILL.md": md("n", "d"), "target/SKILL.md": md("t", "d"),
			"dist/SKILL.md": md("s", "d"), "build/SKILL.md": md("u", "d"), "venv/SKILL.md": md("v", "d"), ".agents/SKILL.md": md("dot", "d")}, "dot", ""},
		{"lower case", map[string]string{"a/skill.md": md("a", "d")}, "a", ""},
		{"exact name first", map[string]string{"a/SKILL.md": md("upper", "d"), "a/skill.md": md("lower", "d"), "a/Skill.md": md("mixed", "d")}, "upper", ""},
		{"lower before mixed", map[string]string{"a/skill.md": md("lower", "d"), "a/Skill.md": md("mixed", "d")}, "lower", ""},
		{"mixed case", map[string]string{"a/Skill.MD": md("a", "d")}, "a", ""},
		{"same name: byte order of paths", map[string]string{"a/x/SKILL.md": md("s", "second"), "a-b/SKILL.md": md("s", "first")}, "s", "is hidden by"},
		{"names compare exactly", map[string]string{"a/SKILL.md": md("Pdf", "d"), "b/SKILL.md": md("pdf", "d")}, "Pdf pdf", ""},
		{"broken ones are told", map[string]string{"a/SKILL.md": "no frontmatter", "b/SKILL.md": md("b", "d")}, "b", "has no frontmatter"},
		{"a directory called SKILL.md", map[string]string{"a/SKILL.md/x": "y"}, "", "SKILL.md cannot be read: is not a regular file"},
		{"link to a directory", map[string]string{"real/SKILL.md": md("real", "d"), "z": "-> real"}, "real", ""},
		{"link loop", map[string]string{"a/SKILL.md": md("a", "d"), "a/up": "-> ..", "b": "-> b"}, "a", ""},
		{"SKILL.md linked within", map[string]string{"a/SKILL.md": "-> docs/s.md", "a/docs/s.md": md("a", "d")}, "a", ""},
		{"SKILL.md linked outside", map[string]string{"a/SKILL.md": "-> ../s.md", "s.md": md("a", "d")}, "", "leads outside"},
		{"SKILL.md dangling", map[string]string{"a/SKILL.md": "-> nowhere"}, "", "SKILL.md cannot be read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := realTempDir(t)
			write(t, dir, tt.files)
			r := open(t, wide(dir))
			if got := names(r); got != tt.want {
				t.Errorf("skills %q; want %q (%v)", got, tt.want, r.Diagnostics())
			}
			if got := messages(r.Diagnostics()); !strings.Contains(got, tt.diag) || (tt.diag == "") != (got == "") {
				t.Errorf("diagnostics %q; want %q", got, tt.diag)
			}
		})
	}
}

func TestSameNameNamesBoth(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{"a/x/SKILL.md": md("s", "second"), "a-b/SKILL.md": md("s", "first")})
	r := open(t, wide(dir))
	d := r.Diagnostics()[0]
	if r.List()[0].Description != "first" || d.Path != filepath.Join(dir, "a/x") || !strings.Contains(d.Message, filepath.Join(dir, "a-b")) {
		t.Errorf("%v, %v", r.List()[0], d)
	}
}

func TestRootPrecedenceAndTrust(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{
		"one/a/SKILL.md": md("a", "from one"), "two/a/SKILL.md": md("a", "from two"), "two/b/SKILL.md": md("b", "from two"), "file": "x", "again": "-> one",
	})
	two := wide(filepath.Join(dir, "two"))
	two.Trusted = false
	r := open(t, wide(filepath.Join(dir, "one")), Root{}, two, wide(filepath.Join(dir, "again")), wide(filepath.Join(dir, "missing")),
		Root{FS: os.DirFS(dir), Path: "gone", Dir: filepath.Join(dir, "gone")}, wide(filepath.Join(dir, "file")))
	a, _ := r.Get(t.Context(), "a")
	b, _ := r.Get(t.Context(), "b")
	if a.Description != "from one" || !a.Trusted || b.Trusted || b.Root != filepath.Join(dir, "two") {
		t.Errorf("a %+v\nb %+v", a, b)
	}
	got := messages(r.Diagnostics())
	want := "the skill \"a\" is hidden by " + filepath.Join(dir, "one/a") + ", which was found first\n" +
		"the skills directory does not exist\nthe skills directory is not a directory\n"
	if got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

// A root below another is searched from its own top, and its skills count once.
func TestRootWithinRoot(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{"1/2/3/4/SKILL.md": md("four", "d"), "1/2/3/4/5/SKILL.md": md("five", "d")})
	r := open(t, wide(dir), wide(filepath.Join(dir, "1/2/3/4")))
	if names(r) != "five four" || len(r.Diagnostics()) != 0 {
		t.Errorf("%q, %v", names(r), r.Diagnostics())
	}
}

// Links of a workspace root must end inside the workspace, whatever FS is behind it.
func TestLinksStayInTheTree(t *testing.T) {
	base := realTempDir(t)
	write(t, base, map[string]string{
		"outside/SKILL.md": md("outside", "d"), "ws/other/in/SKILL.md": md("in", "d"), "ws/other/abs/SKILL.md": md("abs", "d"),
		"ws/skills/out": "-> ../../outside", "ws/skills/outabs": "-> " + filepath.Join(base, "outside"),
		"ws/skills/in": "-> ../other/in", "ws/skills/abs": "-> " + filepath.Join(base, "ws/other/abs"),
	})
	ws := filepath.Join(base, "ws")
	osRoot, err := os.OpenRoot(ws)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = osRoot.Close() }()
	for name, fsys := range map[string]Root{
		"os.Root":  {FS: osRoot.FS(), Path: "skills", Dir: filepath.Join(ws, "skills")},
		"os.DirFS": {FS: os.DirFS(ws), Path: "skills", Dir: filepath.Join(ws, "skills")},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, fsys)
			if names(r) != "abs in" || strings.Count(messages(r.Diagnostics()), "leads outside") != 2 {
				t.Errorf("%q, %v", names(r), r.Diagnostics())
			}
			if s, _ := r.Get(t.Context(), "in"); s.Dir != filepath.Join(ws, "skills/in") || s.RealDir != filepath.Join(ws, "other/in") {
				t.Errorf("%+v", s)
			}
		})
	}
	// The same links are followed where nothing is to be guarded.
	if r := open(t, wide(filepath.Join(ws, "skills"))); names(r) != "abs in outside" {
		t.Errorf("without a wall: %q", names(r))
	}
}

func TestUnusableRoots(t *testing.T) {
	dir := realTempDir(t)
	type hidesLinks struct{ fs.FS }
	r := open(t, Root{Dir: dir}, Root{FS: hidesLinks{os.DirFS(dir)}, Dir: dir}, Root{FS: os.DirFS(dir), Dir: "relative"}, Root{FS: os.DirFS(dir), Dir: dir, Path: "../x"},
		Root{FS: os.DirFS(dir), Dir: dir, Path: "sub"})
	if got := messages(r.Diagnostics()); strings.Count(got, "no usable file tree") != 3 || !strings.Contains(got, "not absolute") || !strings.Contains(got, "does not end in") {
		t.Error(got)
	}
}

func TestTooManyDirectories(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 10,000 directories")
	}
	dir := realTempDir(t)
	for i := range 101 {
		for j := range 100 {
			if err := os.MkdirAll(filepath.Join(dir, string(rune('a'+i%26))+strings.Repeat("x", i/26), strings.Repeat("y", j+1)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := open(t, wide(dir))
	if got := messages(r.Diagnostics()); got != "more than 10000 directories; the rest is not searched\n" {
		t.Error(got)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := Open(ctx, []Root{wide(realTempDir(t))}, Options{})
	if err == nil || len(r.List()) != 0 {
		t.Errorf("%v, %v", r.List(), err)
	}
}

func TestDiagnosticsAreLoggedOnce(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{"a/SKILL.md": "broken", "b/SKILL.md": md("other", "d")})
	var log []Diagnostic
	r, err := Open(t.Context(), []Root{wide(dir)}, Options{Log: func(d Diagnostic) { log = append(log, d) }})
	if err != nil || len(log) != 2 {
		t.Fatalf("%v, %v", log, err)
	}
	r.Get(t.Context(), "unknown") // scans
	if len(log) != 2 {
		t.Errorf("told again: %v", log)
	}
	write(t, dir, map[string]string{"c/SKILL.md": "broken"})
	r.Get(t.Context(), "unknown")
	if len(log) != 3 || log[2].String() != filepath.Join(dir, "c")+": SKILL.md has no frontmatter: the first line is not ---" {
		t.Errorf("%v", log)
	}
}

// Whatever a tree holds, discovery ends without a panic, nothing outside is
// taken in, and a skill beside it is found.
func FuzzDiscovery(f *testing.F) {
	f.Add("a", "SKILL.md", md("a", "d"), "b/link", "../a")
	f.Add("a/b", "skill.md", "---\nname: x", "a/SKILL.md", "../../..")
	f.Add("a", "Skill.md", "", "a/x", "x")
	f.Fuzz(func(t *testing.T, dir, file, content, link, target string) {
		for _, p := range []string{dir, file, link} {
			if !fs.ValidPath(p) || p == "." {
				return
			}
		}
		root := realTempDir(t)
		write(t, root, map[string]string{"k/SKILL.md": md("known", "d")})
		// What the file system refuses is not there; the link comes last, so that nothing is written through it.
		_ = os.MkdirAll(filepath.Join(root, filepath.Dir(dir+"/"+file)), 0o755)
		_ = os.WriteFile(filepath.Join(root, dir, file), []byte(content), 0o644)
		_ = os.MkdirAll(filepath.Join(root, filepath.Dir(link)), 0o755)
		_ = os.Symlink(target, filepath.Join(root, link))
		r := open(t, Root{FS: os.DirFS(root), Dir: root})
		for _, s := range r.List() {
			m, err := s.Manifest(t.Context())
			if err != nil || !within(root, s.RealDir) {
				t.Errorf("%s in %s: %v", s.Name, s.RealDir, err)
				continue
			}
			for _, file := range m.Files {
				if !within(s.real, file.real) {
					t.Errorf("%s has the file %s", s.Name, file.real)
				}
			}
		}
		if len(r.List())+len(r.Diagnostics()) == 0 {
			t.Error("the skill beside it is neither known nor told of")
		}
	})
}
