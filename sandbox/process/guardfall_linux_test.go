package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
)

// gitConfigs runs git outside, where it is to write its settings.
func gitConfigs(dir, key string) error {
	cmd := exec.Command("git", "-C", dir, "config", key, "x")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	return cmd.Run()
}

// plant is a command that has git run a program for its user, if it can write the
// settings.
const plant = `printf '[core]\n\tfsmonitor = "touch planted; false"\n' >> .git/config`

// planted reports whether git outside ran what a command wrote.
func planted(dir string) bool {
	cmd := exec.Command("git", "-C", dir, "status")
	_ = cmd.Run()
	return filetest.Exists(filepath.Join(dir, "planted"))
}

// TestGuardOutlivesGitOutside: git outside cannot take the cover off its settings
// while commands run, and can write them when the session is over.
func TestGuardOutlivesGitOutside(t *testing.T) {
	ws := filepath.Join(gitRepository(t), "main")
	s := isolatedShell(t, Config{Dir: ws})
	other := isolatedShell(t, Config{Dir: ws})
	run(t, other, sh("true"))
	// It goes on trying while git outside works.
	run(t, s, sh("(while ! test -e stop; do "+plant+"; cp .git/config c && mv -f c .git/config.lock; rm -f .git/config.lock; done) >/dev/null 2>&1 &"))
	if err := gitConfigs(ws, "branch.main.remote"); err == nil {
		t.Error("git outside replaced the settings while commands run")
	}
	run(t, s, sh(plant))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gitConfigs(ws, "branch.main.remote"); err == nil {
		t.Error("the other session does not hold the lock any more")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gitConfigs(ws, "branch.main.remote"); err != nil {
		t.Errorf("after the sessions: %v", err)
	}
	if planted(ws) {
		t.Error("git ran what a command wrote")
	}
}

// TestGuardIsMadeAgain: what replaces the settings without asking for the lock, or
// makes a repository later, is covered before the next command, and what earlier
// ones left running is gone.
func TestGuardIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(ws string) error{
		"replaced": func(ws string) error {
			text, err := os.ReadFile(filepath.Join(ws, ".git/config"))
			if err == nil {
				err = os.WriteFile(filepath.Join(ws, "new"), text, 0o644)
			}
			if err == nil {
				err = os.Rename(filepath.Join(ws, "new"), filepath.Join(ws, ".git/config"))
			}
			return err
		},
		"replaced twice": func(ws string) error { // the second one often has the number of the first
			return exec.Command("sed", "-i", "-e", "", "-e", "s/^x//", filepath.Join(ws, ".git/config")).Run()
		},
		"made": func(ws string) error {
			if err := os.RemoveAll(filepath.Join(ws, ".git")); err != nil {
				return err
			}
			return exec.Command("git", "-C", ws, "init", "-q").Run()
		},
	} {
		if testlevel.Quick() && name != "replaced" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			ws := filepath.Join(gitRepository(t), "main")
			if name == "made" {
				if err := os.RemoveAll(filepath.Join(ws, ".git")); err != nil {
					t.Fatal(err)
				}
			}
			s := isolatedShell(t, Config{Dir: ws})
			run(t, s, sh("touch left; tail -f $PWD/left >/dev/null 2>&1 &"))
			for range len(strings.Fields(name)) {
				if err := change(ws); err != nil {
					t.Fatal(err)
				}
			}
			if res := run(t, s, sh(plant)); res.ExitCode == 0 || planted(ws) {
				t.Errorf("the settings were written: %v", res.ExitCode)
			}
			for deadline := time.Now().Add(time.Minute); runs(filepath.Join(ws, "left")); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("what ran before goes on without the guard")
				}
			}
		})
	}
}

// TestHostDirMadeLater: what belongs to the host is covered from the next command on,
// also when it was made, or replaced, since the session began.
func TestHostDirMadeLater(t *testing.T) {
	ws := t.TempDir()
	s := isolatedShell(t, Config{Dir: ws})
	run(t, s, sh("true"))
	host := filepath.Join(ws, "perstack")
	for _, change := range []string{"made", "replaced"} { // often by a directory of the same number
		if err := os.RemoveAll(host); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(host, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(host, "k"), []byte("the host's"), 0o644); err != nil {
			t.Fatal(err)
		}
		res := run(t, s, sh("cat perstack/k; echo evil > perstack/k2"))
		if res.ExitCode == 0 || len(res.Stdout.Head) > 0 || filetest.Exists(filepath.Join(host, "k2")) {
			t.Errorf("%s: %s", change, res.Stdout.Head)
		}
	}
}

// runs reports whether a process has the word among its arguments.
func runs(word string) bool {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		if text, _ := os.ReadFile(line); strings.Contains(string(text), word) {
			return true
		}
	}
	return false
}

// TestPointersOfWorktree: in namespaces the part of the main repository that is the
// worktree's own does not lead git elsewhere.
func TestPointersOfWorktree(t *testing.T) {
	s := isolatedShell(t, Config{Dir: filepath.Join(gitRepository(t), "linked")})
	for _, name := range []string{"commondir", "gitdir"} {
		if res := run(t, s, sh("echo /evil > $(git rev-parse --git-dir)/"+name)); res.ExitCode == 0 {
			t.Error("written: " + name)
		}
	}
}

// TestStaleLock: what a server that was killed leaves is taken over, and removed.
func TestStaleLock(t *testing.T) {
	ws := filepath.Join(gitRepository(t), "main")
	s := isolatedShell(t, Config{Dir: ws})
	run(t, s, sh("true"))
	lock := filepath.Join(ws, ".git/config.lock")
	text, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || filetest.Exists(lock) {
		t.Fatal(err, "or the lock is still there")
	}
	if err := os.WriteFile(lock, text, 0o444); err != nil {
		t.Fatal(err)
	}
	next := isolatedShell(t, Config{Dir: ws})
	run(t, next, sh("true"))
	if err := next.Close(); err != nil || filetest.Exists(lock) {
		t.Error(err, "or the lock is still there")
	}
}
