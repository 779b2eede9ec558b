package files

import (
	"errors"
	"github.com/perstack-ai/perstack-base/sandbox"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func names(list []DirEntry) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Name)
	}
	slices.Sort(out)
	return out
}

func TestDir(t *testing.T) {
	w := newWorld(t)
	w.file("d/e/f", "F")
	w.file("PerStack/x", "P")
	w.file("d/perstack/x", "fine")
	w.file("top", "T")
	w.link("leak", w.out)
	w.link("d/leakfile", w.canary)
	w.link("d/inside", "e")
	d, err := w.fs.OpenDir(".")
	must(t, err)
	defer d.Close()
	list, err := d.Entries()
	must(t, err)
	if got := names(list); !slices.Equal(got, []string{"d", "leak", "top"}) {
		t.Errorf("the top lists %v", got)
	}
	if again, _ := d.Entries(); len(again) != len(list) {
		t.Errorf("the second listing has %d entries", len(again))
	}
	sub, err := d.OpenDir("d")
	must(t, err)
	defer sub.Close()
	list, err = sub.Entries()
	must(t, err)
	if got := names(list); !slices.Equal(got, []string{"e", "inside", "leakfile", "perstack"}) {
		t.Errorf("d lists %v", got)
	}
	if sub.Path().Rel != "d" || sub.Path().Abs != w.path("d") {
		t.Errorf("%+v", sub.Path())
	}
	e, err := sub.OpenDir("e")
	must(t, err)
	defer e.Close()
	f, err := e.OpenFile("f")
	must(t, err)
	defer f.Close()
	if got, _ := io.ReadAll(f); string(got) != "F" || time.Since(f.ModTime()).Abs() > time.Hour {
		t.Errorf("%q of %v", got, f.ModTime())
	}
	for name, want := range map[string]error{
		"leakfile": sandbox.ErrNotRegular, "inside": sandbox.ErrNotRegular, "e": sandbox.ErrIsDirectory, "none": fs.ErrNotExist,
		"..": sandbox.ErrBadPath, ".": sandbox.ErrBadPath, "": sandbox.ErrBadPath, "e/f": sandbox.ErrBadPath, "a\x00": sandbox.ErrBadPath,
		strings.Repeat("x", 300): sandbox.ErrBadPath,
	} {
		if _, err := sub.OpenFile(name); !errors.Is(err, want) {
			t.Errorf("OpenFile(%.20q): %v, want %v", name, err, want)
		}
	}
	for name, want := range map[string]error{"leak": sandbox.ErrNotDirectory, "top": sandbox.ErrNotDirectory, "PerStack": sandbox.ErrReserved, "..": sandbox.ErrBadPath} {
		if _, err := d.OpenDir(name); !errors.Is(err, want) {
			t.Errorf("OpenDir(%q): %v, want %v", name, err, want)
		}
	}
}

func TestReadDir(t *testing.T) {
	w := newWorld(t)
	for _, n := range []string{"c", "a", "perstack", "b/x"} {
		w.file(n, "")
	}
	w.link("l", "b")
	for name, want := range map[string][]string{".": {"a", "b", "c", "l"}, "l": {"x"}, w.ws: {"a", "b", "c", "l"}} {
		list, err := w.fs.ReadDir(name)
		var got []string
		for _, e := range list {
			got = append(got, e.Name())
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("ReadDir(%s): %v, %v", name, got, err)
		}
	}
	if _, err := w.fs.ReadDir("a"); !errors.Is(err, sandbox.ErrNotDirectory) {
		t.Errorf("ReadDir of a file: %v", err)
	}
}

func TestStat(t *testing.T) {
	w := newWorld(t)
	w.file("f", "12345")
	w.link("l", w.path("f"))
	w.link("leak", w.canary)
	for name, size := range map[string]int64{"f": 5, "l": 5, w.path("l"): 5} {
		if info, err := w.fs.Stat(name); err != nil || info.Size() != size || !info.Mode().IsRegular() {
			t.Errorf("Stat(%s): %v, %v", name, info, err)
		}
	}
	for _, name := range []string{"none", "f/x"} {
		if _, err := w.fs.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat(%s): %v", name, err)
		}
	}
	for _, name := range []string{"../x", "leak"} {
		if _, err := w.fs.Stat(name); !errors.Is(err, sandbox.ErrEscapes) {
			t.Errorf("Stat(%s): %v", name, err)
		}
	}
}

func TestReadFile(t *testing.T) {
	w := newWorld(t)
	w.file("empty", "")
	w.file("ten", "0123456789")
	for name, want := range map[string]string{"empty": "", "ten": "0123456789"} {
		if got, err := w.fs.ReadFile(name, 10); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	var large *sandbox.TooLargeError
	if _, err := w.fs.ReadFile("ten", 9); !errors.As(err, &large) || large.Size != 10 {
		t.Errorf("over the limit: %v", err)
	}
	// A file that says it is empty and is not.
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc here")
	}
	proc, err := Open("/proc/self", sandbox.Limits{})
	must(t, err)
	defer proc.Close()
	if got, err := proc.ReadFile("status", 1<<20); err != nil || !strings.Contains(string(got), "Pid:") {
		t.Errorf("status: %d bytes, %v", len(got), err)
	}
	if _, err := proc.ReadFile("status", 100); !errors.As(err, &large) {
		t.Errorf("status over the limit: %v", err)
	}
}

func TestNear(t *testing.T) {
	w := newWorld(t)
	for _, n := range []string{"src/main.go", "src/Main.go", "src/mian.go", "src/main_test.go", "src/maine.go",
		"README.md", "perstack/x", "perstick", "über.txt"} {
		w.file(n, "")
	}
	w.link("s", "src")
	w.link("leak", w.out)
	w.link("p", "perstack")
	for name, want := range map[string][]string{
		"src/MAIN.go":       {"src/Main.go", "src/main.go"},
		"src/main.g":        {"src/main.go", "src/Main.go", "src/maine.go"},
		"s/mainn.go":        {"s/main.go", "s/maine.go", "s/Main.go"},
		"readme.md":         {"README.md"},
		w.path("Readme.md"): {w.path("README.md")},
		"uber.txt":          {"über.txt"},
		"xyzzy":             nil,
		"perstac":           {"perstick"},
		"perstack/y":        nil,
		"p/y":               nil,
		"none/main.go":      nil,
		"leak/canari":       nil,
		"../out/canari":     nil,
		".":                 nil,
		"":                  nil,
		"src/main.go/x":     nil,
	} {
		if got := w.fs.Near(name); !slices.Equal(got, want) {
			t.Errorf("Near(%s) = %q, want %q", name, got, want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abd", 1}, {"abc", "acb", 2}, {"abc", "xyz", 3},
		{"short", "muchlonger", 3}, {"ä", "a", 1}, {"kitten", "sitting", 3}} {
		if got := edits(c.a, c.b, 2); got != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := edits(c.b, c.a, 2); got != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}
