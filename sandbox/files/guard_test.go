package files

import (
	"errors"
	"github.com/perstack-ai/perstack-base/sandbox"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGuardedFiles: what file tools may not change in a .git in the mode Isolate,
// by whatever name, and may where nothing guards it.
func TestGuardedFiles(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		dir := t.TempDir()
		for _, sub := range []string{".git/hooks", "a/b/.git", "c", ".bare/objects", ".bare/refs"} {
			if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, ".bare/HEAD"), []byte("ref: refs/heads/main\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".git/config"), []byte("[core]\nhooksPath = c/hooks # ours\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../.git/config", filepath.Join(dir, "c/link")); err != nil {
			t.Skip(err)
		}
		for link, to := range map[string]string{".git/hooks/post-merge": "../../c/script", ".git/info": "../c/info"} {
			if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
				t.Skip(err)
			}
		}
		f, err := Open(dir, sandbox.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		f.Guarded = guarded
		for _, name := range []string{"c/script", "c/info/attributes", "c/hooks", ".git/config", ".git/hooks/pre-commit", ".git/commondir", "a/b/.git/config.worktree",
			"c/.git", "c/link", ".GIT/config", "a/../.git/x", ".git/HEAD", ".git/HEAD.lock", ".bare/HEAD", ".bare/config", ".bare/hooks/x"} {
			if _, err := f.Write(name, []byte("x")); errors.Is(err, sandbox.ErrGuarded) != guarded || !guarded && err != nil {
				t.Errorf("guarded %v: writing %s: %v", guarded, name, err)
			}
			err := f.Transact([]string{name}, func(tx *Tx) error { return tx.Write(name, []byte("y"), nil) })
			if errors.Is(err, sandbox.ErrGuarded) != guarded || !guarded && err != nil {
				t.Errorf("guarded %v: a patch of %s: %v", guarded, name, err)
			}
		}
		for _, name := range []string{".git/index.lock", "a/b/.git/refs/heads/x", ".git/ORIG_HEAD", ".gitignore", "c/.github", "c/config", "hooks", ".bare/packed-refs"} {
			if _, err := f.Write(name, []byte("x")); err != nil {
				t.Errorf("guarded %v: writing %s: %v", guarded, name, err)
			}
		}
		_ = f.Close()
	}
}

// TestGuardOutlastsHEAD: what a command takes from a repository does not open its settings.
func TestGuardOutlastsHEAD(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"bare/objects", "bare/refs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Open(dir, sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, guarded := range []bool{true, false} {
		f.Guarded = guarded
		for _, name := range []string{"bare/config", "bare/hooks/pre-commit", "bare/HEAD"} {
			if _, err := f.Write(name, []byte("x")); errors.Is(err, sandbox.ErrGuarded) != guarded || !guarded && err != nil {
				t.Errorf("guarded %v: writing %s: %v", guarded, name, err)
			}
		}
	}
}

// TestGuardedNames: what settings of git's name is guarded by whichever way git finds it.
func TestGuardedNames(t *testing.T) {
	for name, setup := range map[string]func(dir string) (config string){
		"in a nested repository": func(dir string) string { return "ws/n/.git/config:hooksPath = h" },
		"in a bare repository":   func(dir string) string { return "ws/n/config:hooksPath = h" },
		"below home":             func(dir string) string { return "ws/.git/config:hooksPath = ~/ws/n/h" },
		"out and in":             func(dir string) string { return "ws/.git/config:hooksPath = ../ws/n/h" },
		"by a link outside":      func(dir string) string { return "ws/.git/config:hooksPath = " + dir + "/link/n/h" },
		"in a linked worktree":   func(dir string) string { return "main/.git/config:hooksPath = h" },
	} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		where, setting, _ := strings.Cut(setup(filepath.ToSlash(dir)), ":")
		texts := map[string]string{where: "[core]\n" + setting + "\n", "ws/n/h/x": "", "ws/h/x": ""}
		switch name {
		case "in a bare repository":
			texts["ws/n/objects/x"], texts["ws/n/refs/x"] = "", ""
		case "in a linked worktree":
			texts["ws/n/.git"], texts["main/.git/worktrees/n/commondir"] = "gitdir: ../../main/.git/worktrees/n\n", "../..\n"
		}
		for name, text := range texts {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("ws", filepath.Join(dir, "link")); err != nil {
			t.Skip(err)
		}
		f, err := Open(filepath.Join(dir, "ws"), sandbox.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f.Guarded = range []bool{false, true} {
			if _, err := f.Write("n/h/post-commit", []byte("x")); errors.Is(err, sandbox.ErrGuarded) != f.Guarded || !f.Guarded && err != nil {
				t.Errorf("%s, guarded %v: %v", name, f.Guarded, err)
			}
			if _, err := f.Write("h/x", []byte("x")); err != nil {
				t.Errorf("%s, guarded %v: %v", name, f.Guarded, err)
			}
		}
		_ = f.Close()
	}
}

// TestGuardedAround: what lies outside of the workspace and takes settings from it is guarded,
// and the links by which it does.
func TestGuardedAround(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string // what there is
		links map[string]string
		write string
	}{
		"the user's hooks":            {map[string]string{"home/.gitconfig": "[core]\nhooksPath = h"}, nil, "h/x"},
		"the user's hooks, absolute":  {map[string]string{"home/.gitconfig": "[core]\nhooksPath = ~/../ws/h"}, nil, "h/x"},
		"the user's settings":         {nil, map[string]string{"home/.gitconfig": "../ws/gc"}, "gc"},
		"the way of these":            {map[string]string{"ws/d/gc": ""}, map[string]string{"home/.gitconfig": "../ws/l/gc", "ws/l": "d"}, "l"},
		"the way of what is included": {map[string]string{"ws/d/gc": "", "ws/.git/config": "[include]\npath = ../l/gc"}, map[string]string{"ws/l": "d"}, "l"},
		"the way of a .git file":      {map[string]string{"ws/d/g/config": "", "ws/.git": "gitdir: l/g"}, map[string]string{"ws/l": "d"}, "l"},
		"a repository around":         {map[string]string{".git/config": "[core]\nhooksPath = ws/h"}, nil, "h/x"},
		"its hooks":                   {map[string]string{".git/config": ""}, map[string]string{".git/hooks": "../ws/h"}, "h/x"},
		"its hook":                    {map[string]string{".git/hooks/x": ""}, map[string]string{".git/hooks/p": "../../ws/s"}, "s"},
		"a .git that leads out":       {map[string]string{"g/config": "[core]\nhooksPath = h"}, map[string]string{"ws/.git": "../g"}, "h/x"},
	} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, sub := range []string{"home", "ws/h"} {
			if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range c.files {
			if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		for link, to := range c.links {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
				t.Skip(err)
			}
		}
		for _, name := range []string{"GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "GIT_CONFIG_SYSTEM"} {
			t.Setenv(name, "")
		}
		t.Setenv("HOME", filepath.Join(dir, "home"))
		t.Setenv("USERPROFILE", filepath.Join(dir, "home"))
		f, err := Open(filepath.Join(dir, "ws"), sandbox.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f.Guarded = range []bool{true, false} {
			change := func(tx *Tx) error { return tx.Write(c.write, []byte("x"), nil) }
			if _, link := c.links["ws/"+c.write]; link {
				change = func(tx *Tx) error { return tx.Remove(c.write) }
			}
			if err := f.Transact(nil, change); errors.Is(err, sandbox.ErrGuarded) != f.Guarded || !f.Guarded && err != nil {
				t.Errorf("%s, guarded %v: %v", name, f.Guarded, err)
			}
			if _, err := f.Write("beside", []byte("x")); err != nil {
				t.Errorf("%s, guarded %v: %v", name, f.Guarded, err)
			}
		}
		_ = f.Close()
	}
}
