package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
)

// gitIn runs git outside of the sandbox.
func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %s", args, out)
	}
}

// gitRepository is one with a directory, a linked worktree and a submodule.
func gitRepository(t *testing.T) (dir string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "main")
	if err := os.MkdirAll(filepath.Join(main, "sub", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(main, "sub", "f"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	gitIn(t, main, "init", "-q")
	gitIn(t, main, "add", ".")
	gitIn(t, main, "commit", "-qm", "first")
	gitIn(t, main, "worktree", "add", "-q", filepath.Join(dir, "linked"))
	gitIn(t, main, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", main, "module")
	return dir
}

// TestRepositoryOutside: git works where the repository lies outside of the
// workspace, and what it executes for its user cannot be changed.
func TestRepositoryOutside(t *testing.T) {
	t.Parallel()
	const commit = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; " +
		"echo y > new && git add new && git commit -qm second && git log --oneline | grep second"
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		for _, tt := range []struct {
			workspace, script string
			ok                bool
		}{
			{"linked", "git status && git log --oneline | grep first", true},
			{"linked", commit, true},
			{"linked", "cd $(git rev-parse --git-common-dir) && echo >> config", false},
			{"linked", "cd $(git rev-parse --git-common-dir) && echo > hooks/pre-commit", false},
			{"linked", "cd $(git rev-parse --git-common-dir) && mv hooks x", false},
			{"linked", "cd $(git rev-parse --git-common-dir) && echo > info/attributes", false},
			{"linked", "cat $(git rev-parse --git-common-dir)/../sub/f", false},
			{"main/sub", "git log --oneline | grep first && git diff -- .", true},
			{"main/sub/deep", "git log --oneline | grep first", true},
			{"main/sub", "git config user.name n", false},
			{"main/module", "git log --oneline | grep first", true},
		} {
			s := shell(t, Config{Dir: filepath.Join(gitRepository(t), tt.workspace)})
			if res := run(t, s, sh(tt.script)); (res.ExitCode == 0) != tt.ok {
				t.Errorf("%s: %s: %d %s %v", tt.workspace, tt.script, res.ExitCode, res.Stderr.Head, res.Refused)
			}
		}
	})
}

// TestForgedRepository: commands of an earlier session can make .git a file that
// names anything, and open nothing by that.
func TestForgedRepository(t *testing.T) {
	t.Parallel()
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		for _, forged := range []string{
			"printf 'gitdir: %s' HOME/.ssh > .git",
			"mkdir -p g/worktrees/x; echo WS/.git > g/worktrees/x/gitdir; echo HOME/.ssh > g/worktrees/x/commondir; echo gitdir: WS/g/worktrees/x > .git",
			"mkdir g; printf '[core]\\n worktree = %s\\n' WS > g/config; echo gitdir: WS/g > .git",
			"ln -s HOME/.ssh .git",
			"mkfifo .git",
			"ln -s HOME/.ssh g; echo gitdir: WS/g > .git",
		} {
			v := newVictim(t)
			fill := strings.NewReplacer("HOME", v.home, "WS", v.ws)
			free, _ := newShell(t, Config{Dir: v.ws, Sandbox: Off})
			if res := run(t, free, sh(fill.Replace(forged))); res.ExitCode != 0 {
				t.Fatalf("%s: %s", forged, res.Stderr.Head)
			}
			if leaks(t, shell(t, Config{Dir: v.ws, Env: v.env("/bin")}), "cat "+v.secret) {
				t.Errorf("%s: the command got the key", forged)
			}
			if !leaks(t, free, "cat "+v.secret) {
				t.Error("without the sandbox it does not get it either: the test proves nothing")
			}
		}
	})
}

// TestForgedWorktree: what commands build in their cache, or in the private
// directory of a session that still runs, is no repository of the workspace's.
func TestForgedWorktree(t *testing.T) {
	const forge = `mkdir -p $F/worktrees/x && echo WS/.git > $F/worktrees/x/gitdir && echo ../.. > $F/worktrees/x/commondir &&
		ln -s HOME $F/objects && mkdir -p $F/refs $F/logs && echo "gitdir: $F/worktrees/x" > WS/.git`
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		for _, place := range []string{"${XDG_CACHE_HOME%/xdg}/g", "$TMPDIR/g", "$HOME/g"} {
			filetest.OwnCaches(t)
			v := newVictim(t)
			first := shell(t, Config{Dir: v.ws, Env: v.env("/bin")})
			script := "F=" + place + "\n" + strings.NewReplacer("HOME ", v.home+" ", "WS", v.ws).Replace(forge)
			if res := run(t, first, sh(script)); res.ExitCode != 0 {
				t.Fatalf("%s: %s", place, res.Stderr.Head)
			}
			next := shell(t, Config{Dir: v.ws, Env: v.env("/bin")})
			if leaks(t, next, "cat "+v.secret) {
				t.Errorf("%s: the next server's commands got the key", place)
			}
			if run(t, next, sh("echo x > "+v.home+"/planted")); filetest.Exists(filepath.Join(v.home, "planted")) {
				t.Errorf("%s: the next server's commands can write the home directory", place)
			}
		}
	})
}

// TestLinksInRepositories: a repository outside in which links lead away counts as none.
func TestLinksInRepositories(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		v := newVictim(t)
		top := filepath.Dir(v.ws)
		if err := errors.Join(os.Mkdir(filepath.Join(top, ".git"), 0o755), os.Symlink(v.secret, filepath.Join(top, ".gitignore"))); err != nil {
			t.Fatal(err)
		}
		if leaks(t, shell(t, Config{Dir: v.ws, Env: v.env("/bin")}), "cat "+v.secret) {
			t.Error("a link beside .git opens what it leads to")
		}
	})
}

func TestSafeDirectory(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give the workspace to somebody else")
	}
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		ws := filepath.Join(gitRepository(t), "main")
		if out, err := exec.Command("chown", "-R", "65534:65534", ws).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
		if res := run(t, shell(t, Config{Dir: ws}), sh("git status")); res.ExitCode != 0 {
			t.Errorf("%s", res.Stderr.Head)
		}
	})
}

// TestClosedNetworkIsKnown: real tools do not try again where there is no network.
func TestClosedNetworkIsKnown(t *testing.T) {
	t.Parallel()
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		s := shell(t, Config{})
		for _, tt := range []struct{ tool, script, without string }{
			{"npm", "test $(npm config get fetch-retries) = 0 && test $(npm config get audit) = false && test $(npm config get update-notifier) = false", "timeout"},
			{"pip", "! pip install --no-cache-dir --index-url https://registry.invalid/simple no-such-package-at-all 2>&1", "Retrying"},
			{"cargo", "cargo init -q --name x . && echo 'no-such-crate-at-all = \"1\"' >> Cargo.toml; ! cargo fetch 2>&1", "tries remaining"},
		} {
			if _, err := exec.LookPath(tt.tool); err != nil {
				continue
			}
			res := run(t, s, sh(tt.script))
			if out := string(res.Stdout.Head); res.ExitCode != 0 || strings.Contains(out, tt.without) {
				t.Errorf("%s: %d %s %s", tt.tool, res.ExitCode, out, res.Stderr.Head)
			}
		}
	})
}
