package scratch

import (
	"errors"
	"fmt"
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// workdirs are those of a new workspace, in a cache of their own.
func workdirs(t *testing.T) *Workdirs {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return NewWorkdirs(t.TempDir())
}

func TestWorkdirIsPrivateAndGoes(t *testing.T) {
	d := workdirs(t)
	w, err := d.New("session-a")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(w.Root())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := d.New("session-a"); err == nil {
		t.Error("two sessions share a tree")
	}
	if err := w.Mkdir("a/b"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(w.Root(), "a"), 0o500); err != nil {
		t.Fatal(err)
	}
	dir := w.Root()
	w.Close()
	w.Close()
	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWorkdirChanges(t *testing.T) {
	d := workdirs(t)
	w, err := d.New("session-a")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	outside := t.TempDir()
	for _, err := range []error{
		w.Mkdir("d/e"), create(w, "d/f", "text", 9), w.Link("d/f", "l"), w.Link("d/e", "l"), w.Link(outside, "out"), w.Rename("d/f", "g"),
		create(w, "h", "other", 9), w.Rename("h", "d"), // a file in the place of a tree
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	entries, err := w.Stamps(".")
	var got []string
	for _, e := range entries {
		got = append(got, e.Path)
	}
	if err != nil || strings.Join(got, " ") != "d g l out" {
		t.Errorf("%v %v", got, err)
	}
	again, _ := w.Stamps(".")
	if !slices.Equal(entries, again) {
		t.Error("an unchanged tree looks changed")
	}
	var large *sandbox.TooLargeError
	if err := create(w, "big", "123", 2); !errors.As(err, &large) || large.Limit != 2 {
		t.Errorf("too large: %v", err)
	}
	for _, err := range []error{create(w, "out/x", "x", 9), w.Mkdir("out/x"), w.Rename("g", "out/x"), create(w, "../x", "x", 9)} {
		if err == nil {
			t.Error("a change went through a link that leads out")
		}
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("written outside: %v", left)
	}
	if err := os.WriteFile(filepath.Join(outside, "x"), nil, 0o600); err != nil {
		t.Fatal("the unguarded write would not have succeeded either:", err)
	}
}

func create(w *Workdir, rel, text string, limit int64) error {
	_, err := w.Create(rel, 0o600, strings.NewReader(text), limit)
	return err
}

// TestStampsShowChanges: whatever is done to a file, its stamp differs.
func TestStampsShowChanges(t *testing.T) {
	w, err := workdirs(t).New("session-a")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	path := filepath.Join(w.Root(), "f")
	for name, change := range map[string]func() error{
		"mode": func() error { return os.Chmod(path, 0o640) },
		"content, with the old time": func() error {
			info, _ := os.Stat(path)
			if err := os.WriteFile(path, []byte("TEXT"), 0o600); err != nil {
				return err
			}
			return os.Chtimes(path, time.Now(), info.ModTime())
		},
		"another file": func() error {
			return errors.Join(os.WriteFile(path+"2", []byte("text"), 0o600), os.Rename(path+"2", path))
		},
		"removed": func() error { return os.Remove(path) },
	} {
		_ = os.Remove(path)
		if err := create(w, "f", "text", 9); err != nil {
			t.Fatal(err)
		}
		before, _ := w.Stamps(".")
		time.Sleep(20 * time.Millisecond)
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if after, _ := w.Stamps("."); slices.Equal(before, after) {
			t.Errorf("%s: unseen", name)
		}
	}
}

func TestSweep(t *testing.T) {
	d := workdirs(t)
	d.Sweep() // nothing is made yet
	w, err := d.New("session-live")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	run := filepath.Dir(w.Root())
	old := time.Now().Add(-2 * abandoned)
	for _, name := range []string{"session-dead", "session-young"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(run, name, "x"), 0o700), os.WriteFile(filepath.Join(run, name+lockSuffix), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"session-dead", "session-live"} {
		if err := os.Chtimes(filepath.Join(run, name+lockSuffix), old, old); err != nil {
			t.Fatal(err)
		}
	}
	d.Sweep()
	left, _ := os.ReadDir(run)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "session-live session-live.lock session-young session-young.lock" {
		t.Errorf("left: %s", got)
	}
}

func TestArtifacts(t *testing.T) {
	d := workdirs(t)
	a := d.Artifacts()
	if _, _, err := a.Open("n", -1); !errors.Is(err, ErrNoArtifact) {
		t.Errorf("nothing saved: %v", err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	versions := map[int]string{}
	for i := range 20 {
		all.Go(func() {
			text := fmt.Sprint("text ", i)
			v, err := NewWorkdirs(d.writable[0]).Artifacts().Save("a/b", strings.NewReader(text)) // as another process would
			mu.Lock()
			defer mu.Unlock()
			if _, taken := versions[v]; taken || err != nil {
				t.Errorf("version %d: taken %v, %v", v, taken, err)
			}
			versions[v] = text
		})
	}
	all.Wait()
	for v, want := range versions {
		file, got, err := a.Open("a/b", v)
		if err != nil || got != v {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(file)
		file.Close()
		if string(text) != want || v < 0 || v >= 20 {
			t.Errorf("version %d is %q, want %q", v, text, want)
		}
	}
	if file, v, err := a.Open("a/b", -1); err != nil || v != 19 {
		t.Errorf("latest: %d %v", v, err)
	} else {
		file.Close()
	}
	if _, _, err := a.Open("a/b", 20); !errors.Is(err, ErrNoArtifact) {
		t.Errorf("version 20: %v", err)
	}
	if names := a.Names(); fmt.Sprint(names) != "[a/b]" {
		t.Errorf("names: %v", names)
	}
}

// TestTrees: both trees list and read; the workspace's never leaves it.
func TestTrees(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"skills/x/f": "text", "perstack/secret": "s"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "o"), nil, 0o600), os.Symlink(outside, filepath.Join(dir, "out"))); err != nil {
		t.Fatal(err)
	}
	fsys, err := files.Open(dir, sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	host, top, abs, err := files.HostTree(dir)
	if err != nil || abs != dir {
		t.Fatal(abs, err)
	}
	for _, c := range []struct {
		tree fs.ReadLinkFS
		path string
		ok   bool
	}{
		{fsys.Tree(), "skills/x/f", true}, {host, top + "/skills/x/f", true}, {fsys.Tree(), "out/o", false}, {fsys.Tree(), "perstack/secret", false},
		{fsys.Tree(), "../x", false}, {host, "/etc", false}, {host, top + "/out/o", false},
	} {
		data, err := fs.ReadFile(c.tree, c.path)
		if (err == nil) != c.ok {
			t.Errorf("%s: %q %v", c.path, data, err)
		}
	}
	if target, err := fsys.Tree().ReadLink("out"); err != nil || target != outside {
		t.Errorf("link: %s %v", target, err)
	}
	if info, err := fsys.Tree().Lstat("out"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("lstat: %v %v", info, err)
	}
}

func TestOpenBelow(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600), os.WriteFile(filepath.Join(dir, "g"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		root, path string
		ok         bool
	}{
		{dir, filepath.Join(dir, "f"), true}, {filepath.Join(dir, "f"), filepath.Join(dir, "f"), true},
		{filepath.Join(dir, "f"), filepath.Join(dir, "g"), false}, {other, filepath.Join(dir, "f"), false}, {filepath.Join(dir, "none"), dir, false},
	} {
		files, name, err := files.OpenBelow(c.root, c.path)
		if (err == nil) != c.ok {
			t.Errorf("%v: %v", c, err)
		}
		if err != nil {
			continue
		}
		if _, err := files.ReadFile(name, 9); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		files.Close()
	}
}

// TestWorkdirsTrustNobodyElse: a root service without HOME meets what others put
// in the place of its private directories, and leaves it alone.
func TestWorkdirsTrustNobodyElse(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	name := fmt.Sprintf("perstack-base-%d", os.Getuid())
	for what, put := range map[string]func(tmp, target string) error{
		"a link": func(tmp, target string) error { return os.Symlink(target, filepath.Join(tmp, name)) },
		"a link below it": func(tmp, target string) error {
			return errors.Join(os.Mkdir(filepath.Join(tmp, name), 0o700), os.Symlink(target, filepath.Join(tmp, name, "perstack-base")))
		},
		"another's": func(tmp, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(tmp, name), 0o777), os.Lchown(filepath.Join(tmp, name), 65534, 65534))
		},
		"another's below": func(tmp, _ string) error {
			return errors.Join(os.MkdirAll(filepath.Join(tmp, name, "perstack-base"), 0o777), os.Lchown(filepath.Join(tmp, name, "perstack-base"), 65534, 65534))
		},
		"a file":           func(tmp, _ string) error { return os.WriteFile(filepath.Join(tmp, name), nil, 0o600) },
		"nothing, exposed": nil,
	} {
		t.Run(what, func(t *testing.T) {
			tmp, target := t.TempDir(), t.TempDir()
			if err := os.Chmod(target, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TMPDIR", tmp)
			var also []string
			if put == nil {
				also = []string{tmp}
			} else if err := put(tmp, target); errors.Is(err, fs.ErrPermission) {
				t.Skip("only root can give files away")
			} else if err != nil {
				t.Fatal(err)
			}
			if _, err := NewWorkdirs(t.TempDir(), also...).New("session-a"); !errors.Is(err, ErrNoWorkdir) {
				t.Errorf("got %v", err)
			}
			info, err := os.Stat(target)
			left, _ := os.ReadDir(target)
			if err != nil || info.Mode().Perm() != 0o755 || len(left) != 0 {
				t.Errorf("the target of the link was changed: %v %v", info.Mode(), left)
			}
		})
	}
	t.Setenv("TMPDIR", t.TempDir())
	w, err := NewWorkdirs(t.TempDir()).New("session-a")
	if err != nil {
		t.Fatal("where nobody was first, it must be made:", err)
	}
	w.Close()
}

// TestOwnName: where users have no number, as on Windows, the name has no -1.
func TestOwnName(t *testing.T) {
	if ownName(7) == ownName(8) || strings.Contains(ownName(-1), "-1") {
		t.Errorf("got %s, %s, %s", ownName(7), ownName(8), ownName(-1))
	}
}
