package files

import (
	"errors"
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// A world is a workspace with a canary beside it.
type world struct {
	*testing.T
	fs      *FS
	ws, out string // the workspace and the directory outside
	canary  string // a file in out
}

// longWay makes every world do without the kernel's short way.
var longWay bool

func TestLongWay(t *testing.T) {
	longWay = true
	defer func() { longWay = false }()
	for name, test := range map[string]func(*testing.T){
		"Resolve": TestResolve, "OutsideAnswersAlike": TestOutsideAnswersAlike, "Write": TestWrite,
		"ResolveDir": TestResolveDir, "Edit": TestEdit, "ParallelEdits": TestParallelEditsLoseNothing,
		"Transact": TestTransact, "StaleRoot": TestStaleRoot, "Dir": TestDir, "ReadFile": TestReadFile,
	} {
		t.Run(name, test)
	}
}

const secret = "CANARY: nobody may read or change this"

func newWorld(t testing.TB) *world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{ws: filepath.Join(top, "ws"), out: filepath.Join(top, "out")}
	w.T, _ = t.(*testing.T)
	w.canary = filepath.Join(w.out, "canary")
	for _, dir := range []string{w.ws, w.out} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(w.canary, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	if w.fs, err = Open(w.ws, sandbox.Limits{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.fs.Close() })
	if longWay {
		w.fs.cur.Load().fd = -1
	}
	return w
}

func (w *world) path(rel string) string { return filepath.Join(w.ws, rel) }

func (w *world) file(rel, content string) {
	w.Helper()
	must(w.T, os.MkdirAll(filepath.Dir(w.path(rel)), 0o755))
	must(w.T, os.WriteFile(w.path(rel), []byte(content), 0o644))
}

func (w *world) link(rel, target string) {
	w.Helper()
	must(w.T, os.MkdirAll(filepath.Dir(w.path(rel)), 0o755))
	must(w.T, os.Symlink(target, w.path(rel)))
}

func (w *world) want(rel, content string) {
	w.Helper()
	got, err := os.ReadFile(w.path(rel))
	if err != nil || string(got) != content {
		w.Errorf("%s: %q, %v; want %q", rel, got, err, content)
	}
}

// clean asserts that the outside is untouched and nothing temporary is left.
func (w *world) clean() {
	w.Helper()
	if got, err := os.ReadFile(w.canary); err != nil || string(got) != secret {
		w.Errorf("the canary outside: %q, %v", got, err)
	}
	if list, _ := os.ReadDir(w.out); len(list) != 1 {
		w.Errorf("outside: %v", list)
	}
	w.noTemps()
}

func (w *world) noTemps() {
	w.Helper()
	_ = filepath.WalkDir(w.ws, func(p string, d fs.DirEntry, err error) error {
		if err == nil && disk.IsTemp(d.Name()) {
			w.Errorf("left behind: %s", p)
		}
		return nil
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read reads a whole file through the FS.
func (w *world) read(name string) (string, error) {
	data, err := w.fs.ReadFile(name, 1<<20)
	return string(data), err
}

func TestResolve(t *testing.T) {
	w := newWorld(t)
	w.file("a.txt", "A")
	w.file("d/b.txt", "B")
	w.file("perstack/secret", "P")
	w.file("sub/perstack/ok", "S")
	w.file(".perstack", "dot")
	w.file("perstack2", "two")
	w.link("rel", "d/b.txt")
	w.link("abs", w.path("d/b.txt"))
	w.link("absdir", w.path("d"))
	w.link("d/up", "../a.txt")
	w.link("absdots", w.ws+"/d/../a.txt")
	w.link("roundabout", "../ws/a.txt")
	w.link("roundaboutdir", "d/../../ws/d")
	w.link("top", ".")
	w.link("out", w.canary)
	w.link("outdir", w.out)
	w.link("outrel", "../out/canary")
	w.link("outmissing", w.out+"/nothing")
	w.link("chainout", "step1")
	w.link("step1", "outdir/canary")
	w.link("dangling", "not/here")
	w.link("danglingabs", w.path("new/file"))
	w.link("danglingdots", "nodir/../a.txt")
	w.link("loop", "loop2")
	w.link("loop2", "loop")
	w.link("self", "self")
	w.link("secretlink", "perstack/secret")
	w.link("secretdir", "d/../perstack")
	w.link("secretabs", w.path("perstack"))
	for i := range 40 {
		target := "chain" + strconv.Itoa(i+1)
		if i == 39 {
			target = "a.txt"
		}
		w.link("chain"+strconv.Itoa(i), target)
	}
	w.link("chainlong", "chain0")
	must(t, os.Symlink(w.ws, filepath.Join(w.out, "back")))
	must(t, os.Symlink(w.path("a.txt"), filepath.Join(w.out, "backfile")))
	w.link("returns", w.out+"/backfile")
	w.link("alias", w.out+"/back/a.txt")

	up := strings.Repeat("../", 40)
	for name, want := range map[string]any{
		".":                        ".",
		"a.txt":                    "a.txt",
		"./a.txt":                  "a.txt",
		"a.txt/":                   "a.txt",
		"d//b.txt":                 "d/b.txt",
		"x/../a.txt":               "a.txt",
		"a.txt/../d/b.txt":         "d/b.txt",
		"outdir/../a.txt":          "a.txt",
		"new":                      "new",
		"new/deep/file":            "new/deep/file",
		"../ws/a.txt":              "a.txt",
		"../ws":                    ".",
		"..":                       sandbox.ErrEscapes,
		"../out/canary":            sandbox.ErrEscapes,
		"../out/nothing":           sandbox.ErrEscapes,
		"../ws2/a":                 sandbox.ErrEscapes,
		up + "etc/passwd":          sandbox.ErrEscapes,
		w.ws:                       ".",
		w.ws + "/":                 ".",
		w.ws + "/a.txt":            "a.txt",
		w.ws + "/../ws/d/b.txt":    "d/b.txt",
		w.ws + "2/a.txt":           sandbox.ErrEscapes,
		w.out + "/back/a.txt":      "a.txt",
		w.out + "/back/d/new":      "d/new",
		w.out + "/back/perstack/x": sandbox.ErrReserved,
		w.out + "/backfile":        sandbox.ErrEscapes,
		"/":                        sandbox.ErrEscapes,
		"/etc/passwd":              sandbox.ErrEscapes,
		"/does/not/exist":          sandbox.ErrEscapes,
		"rel":                      "d/b.txt",
		"abs":                      "d/b.txt",
		"absdir/b.txt":             "d/b.txt",
		"absdir/new":               "d/new",
		"d/up":                     "a.txt",
		"absdots":                  "a.txt",
		"roundabout":               "a.txt",
		"roundaboutdir/b.txt":      "d/b.txt",
		"top/top/d/b.txt":          "d/b.txt",
		"out":                      sandbox.ErrEscapes,
		"outdir":                   sandbox.ErrEscapes,
		"outdir/canary":            sandbox.ErrEscapes,
		"outdir/nothing":           sandbox.ErrEscapes,
		"outrel":                   sandbox.ErrEscapes,
		"outmissing":               sandbox.ErrEscapes,
		"chainout":                 sandbox.ErrEscapes,
		"returns":                  sandbox.ErrEscapes,
		"alias":                    "a.txt",
		"dangling":                 "not/here",
		"danglingabs":              "new/file",
		"danglingdots":             fs.ErrNotExist,
		"loop":                     sandbox.ErrLinkLoop,
		"self":                     sandbox.ErrLinkLoop,
		"loop/x":                   fs.ErrNotExist,
		"chain0":                   "a.txt",
		"chainlong":                sandbox.ErrLinkLoop,
		"a.txt/below":              fs.ErrNotExist,
		"rel/below":                fs.ErrNotExist,
		"perstack":                 sandbox.ErrReserved,
		"perstack/secret":          sandbox.ErrReserved,
		"Perstack":                 sandbox.ErrReserved,
		"PERSTACK/x/y":             sandbox.ErrReserved,
		"perſtack":                 sandbox.ErrReserved,
		"./d/../perstack":          sandbox.ErrReserved,
		"perstack/../a.txt":        "a.txt",
		w.ws + "/perstack":         sandbox.ErrReserved,
		"../ws/perstack":           sandbox.ErrReserved,
		"secretlink":               sandbox.ErrReserved,
		"secretdir/secret":         sandbox.ErrReserved,
		"secretabs":                sandbox.ErrReserved,
		"top/perstack/secret":      sandbox.ErrReserved,
		"sub/perstack/ok":          "sub/perstack/ok",
		".perstack":                ".perstack",
		"perstack2":                "perstack2",
		"":                         sandbox.ErrBadPath,
		"a\x00b":                   sandbox.ErrBadPath,
		"../\x00":                  sandbox.ErrBadPath,
		strings.Repeat("x/", 3000): sandbox.ErrBadPath,
		strings.Repeat("x", 300):   sandbox.ErrBadPath,
		"~":                        sandbox.ErrEscapes,
		"~/notes":                  sandbox.ErrEscapes,
		"~user":                    "~user",
		"d/~":                      "d/~",
	} {
		p, err := w.fs.Resolve(name)
		var pathErr *sandbox.PathError
		switch want := want.(type) {
		case error:
			if !errors.Is(err, want) || !errors.As(err, &pathErr) || pathErr.Path != name {
				t.Errorf("Resolve(%.80q): %v, %v; want %v", name, p, err, want)
			}
		case string:
			abs := filepath.Join(w.ws, want)
			if err != nil || p.Rel != want || p.Abs != abs {
				t.Errorf("Resolve(%.80q): %+v, %v; want %s", name, p, err, want)
			}
		}
	}
}

// An answer about the outside must not tell what is there.
func TestOutsideAnswersAlike(t *testing.T) {
	w := newWorld(t)
	w.link("link1", w.canary)
	w.link("link2", w.out+"/nothing")
	for _, pair := range [][2]string{
		{w.canary, w.out + "/nothing"}, {"../out/canary", "../out/nothing"}, {"link1", "link2"},
	} {
		for op, call := range w.calls() {
			a, b := call(pair[0]), call(pair[1])
			if !errors.Is(a, sandbox.ErrEscapes) {
				t.Errorf("%s(%s): %v, want ErrEscapes", op, pair[0], a)
				continue
			}
			a2 := strings.ReplaceAll(a.Error(), pair[0], "N")
			if b == nil || strings.ReplaceAll(b.Error(), pair[1], "N") != a2 {
				t.Errorf("%s answers %v for what exists, %v for what does not", op, a, b)
			}
			if pair[0] == "link1" && strings.Contains(a.Error(), w.out) {
				t.Errorf("%s names the outside: %v", op, a)
			}
		}
	}
	w.clean()
}

// calls are the operations that follow links.
func (w *world) calls() map[string]func(string) error {
	return map[string]func(string) error{
		"Open":    func(n string) error { _, err := w.fs.Open(n); return err },
		"Stat":    func(n string) error { _, err := w.fs.Stat(n); return err },
		"OpenDir": func(n string) error { _, err := w.fs.OpenDir(n); return err },
		"ReadDir": func(n string) error { _, err := w.fs.ReadDir(n); return err },
		"Resolve": func(n string) error { _, err := w.fs.ResolveDir(n); return err },
		"Write":   func(n string) error { _, err := w.fs.Write(n, []byte("x")); return err },
		"Edit": func(n string) error {
			_, err := w.fs.Edit(n, func([]byte) ([]byte, error) { return []byte("x"), nil })
			return err
		},
		"Transact": func(n string) error {
			return w.fs.Transact([]string{n}, func(tx *Tx) error { return tx.Write(n, []byte("x"), nil) })
		},
	}
}

func TestTildeEntry(t *testing.T) {
	w := newWorld(t)
	if _, err := w.fs.Write("~/notes", nil); !errors.Is(err, sandbox.ErrEscapes) {
		t.Errorf("without the entry: %v", err)
	}
	w.file("~/notes", "n")
	if got, err := w.read("~/notes"); got != "n" || err != nil {
		t.Errorf("with the entry: %q, %v", got, err)
	}
}

func TestErrorNamesTheLink(t *testing.T) {
	w := newWorld(t)
	w.link("d/leak", w.out)
	_, err := w.fs.Open("d/leak/canary")
	var e *sandbox.PathError
	if !errors.As(err, &e) || e.Link != "d/leak" || !strings.Contains(e.Error(), "d/leak leads there") {
		t.Errorf("%v", err)
	}
}

func TestSpellingOfTheRoot(t *testing.T) {
	w := newWorld(t)
	w.file("a", "A")
	alias := filepath.Join(w.out, "alias")
	must(t, os.Symlink(w.ws, alias))
	f, err := Open(alias, sandbox.Limits{})
	must(t, err)
	defer f.Close()
	if f.Root() != w.ws {
		t.Errorf("Root() = %s, want %s", f.Root(), w.ws)
	}
	for _, name := range []string{"a", alias + "/a", w.ws + "/a", "../alias/a", "../ws/a"} {
		if p, err := f.Resolve(name); err != nil || p.Abs != w.path("a") {
			t.Errorf("Resolve(%s): %+v, %v", name, p, err)
		}
	}
}

func TestWorkspaceIsTheWholeDisk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no single root here")
	}
	w := newWorld(t)
	f, err := Open("/", sandbox.Limits{})
	must(t, err)
	defer f.Close()
	for _, name := range []string{w.canary, strings.TrimPrefix(w.canary, "/"), "../.." + w.canary} {
		p, err := f.Resolve(name)
		if err != nil || p.Abs != w.canary || !p.Exists {
			t.Errorf("Resolve(%s): %+v, %v", name, p, err)
		}
	}
	if p, err := f.Resolve("/"); err != nil || p.Abs != "/" || p.Rel != "." {
		t.Errorf("Resolve(/): %+v, %v", p, err)
	}
	name := filepath.Join(w.ws, "made")
	if _, err := f.Write(name, []byte("x")); err != nil {
		t.Error(err)
	}
	w.want("made", "x")
	if _, err := f.Resolve("/perstack/x"); !errors.Is(err, sandbox.ErrReserved) {
		t.Errorf("/perstack: %v", err)
	}
}

func TestResolveDir(t *testing.T) {
	w := newWorld(t)
	w.file("d/file", "")
	w.link("dl", w.path("d"))
	w.link("leak", w.out)
	for name, want := range map[string]error{
		".": nil, "d": nil, "dl": nil, "d/..": nil,
		"d/file": sandbox.ErrNotDirectory, "none": fs.ErrNotExist, "none/deeper": fs.ErrNotExist,
		"d/file/x": fs.ErrNotExist, "leak": sandbox.ErrEscapes, "..": sandbox.ErrEscapes, "perstack": sandbox.ErrReserved,
	} {
		if _, err := w.fs.ResolveDir(name); !errors.Is(err, want) {
			t.Errorf("ResolveDir(%s): %v, want %v", name, err, want)
		}
	}
}

// The long way must give every answer that the short way gives.
func TestBothWaysAgree(t *testing.T) {
	w := newWorld(t)
	w.file("d/e/f", "x")
	w.link("l", "d")
	st := w.fs.cur.Load()
	for _, rel := range []string{".", "d", "d/e", "d/e/f", "d/e/new", "l", "l/e/f", "none", "none/x", "d/e/f/x"} {
		for _, follow := range []bool{true, false} {
			short, ok := w.fs.plain(st, rel, follow)
			if !ok {
				continue
			}
			long := walk{f: w.fs, st: st, name: rel, follow: follow, hops: 40}
			if p, err := long.run(rel); err != nil || p != short {
				t.Errorf("%s follow=%v: short %+v, long %+v %v", rel, follow, short, p, err)
			}
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{
		"a", "../out/canary", "leak/canary", "leakdir/../out/canary", "./x/../..//out", "~", "l/l/l/canary",
		"chain/canary", "abs/../../out/canary", "..\\out\\canary", "perstack/x", "nowhere", "d/up/out/canary",
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, name, target string) {
		w := newWorld(t)
		w.file("d/a", "inside")
		w.file("perstack/x", secret)
		w.link("leak", w.out)
		w.link("leakfile", w.canary)
		w.link("nowhere", w.out+"/made")
		w.link("chain", "leak")
		w.link("l", ".")
		w.link("abs", w.path("d"))
		w.link("d/up", "../..")
		if target != "" && !strings.Contains(target, "\x00") {
			_ = os.Symlink(target, w.path("fuzzed"))
			name = strings.Replace(name, "a", "fuzzed", 1)
		}
		for _, n := range []string{name, w.ws + "/" + name, "fuzzed/" + name} {
			if got, err := w.read(n); err == nil && strings.Contains(got, "CANARY") {
				t.Fatalf("read %q through %q (fuzzed -> %q)", got, n, target)
			}
			_, _ = w.fs.Write(n, []byte("written"))
			_ = w.fs.Transact(nil, func(tx *Tx) error { return tx.Remove(n) })
			_, _ = w.fs.ReadDir(n)
			w.fs.Near(n)
		}
		w.clean()
		if got, err := os.ReadFile(w.path("perstack/x")); err != nil || string(got) != secret {
			t.Fatalf("perstack/x: %q, %v after %q", got, err, name)
		}
	})
}
