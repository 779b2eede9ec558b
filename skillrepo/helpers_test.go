package skillrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// realTempDir is a temporary directory without links in its path.
func realTempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// write makes files below dir; a value "-> x" makes a link to x, a path ending in / a directory.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(target, p)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(p, 0o755)
		} else {
			err = os.WriteFile(p, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// md is a SKILL.md with that name and description and a one-line body.
func md(name, desc string) string {
	return "---\nname: " + name + "\ndescription: " + desc + "\n---\nBody of " + name + ".\n"
}

// wide is a root from which links may lead anywhere.
func wide(dir string) Root {
	return Root{FS: os.DirFS("/"), Path: strings.TrimPrefix(filepath.ToSlash(dir), "/"), Dir: dir, Trusted: true}
}

func open(t testing.TB, roots ...Root) *Repo {
	t.Helper()
	r, err := Open(t.Context(), roots, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// one loads the single skill whose SKILL.md is given, in a directory named demo.
func one(t testing.TB, skillMD string) (*Skill, []Diagnostic) {
	t.Helper()
	dir := realTempDir(t)
	write(t, dir, map[string]string{"demo/SKILL.md": skillMD})
	r := open(t, wide(dir))
	if len(r.List()) == 0 {
		return nil, r.Diagnostics()
	}
	return r.List()[0], r.List()[0].Diagnostics
}

func names(r *Repo) string {
	var list []string
	for _, s := range r.List() {
		list = append(list, s.Name)
	}
	return strings.Join(list, " ")
}

func messages(list []Diagnostic) string {
	var b strings.Builder
	for _, d := range list {
		b.WriteString(d.Message + "\n")
	}
	return b.String()
}
