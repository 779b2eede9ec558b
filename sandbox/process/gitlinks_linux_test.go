package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// linkAttacks make a link in the part of the main repository that a linked
// worktree may write, in each way there is: $C is that part's top, V a file outside.
var linkAttacks = map[string]string{
	"logs/HEAD":      `ln -sf V $C/logs/HEAD`,
	"a branch":       `mkdir -p $C/logs/refs/heads; ln -sf V $C/logs/refs/heads/master`,
	"moved":          `ln -s V l && mkdir -p $C/logs/refs/heads && mv -f l $C/logs/refs/heads/master`,
	"linked":         `ln -s V l && rm -f $C/logs/refs/heads/master; ln -P l $C/logs/refs/heads/master`,
	"in a directory": `mkdir d && ln -s V d/master && rm -rf $C/logs/refs/heads; perl -e 'rename("d", "'$C'/logs/refs/heads") or die "$!"'`,
}

// TestLinksIntoMainRepository: what a command leaves in the part of the main
// repository that it may write does not lead the user's git, which writes a line
// into a log at each commit, out of there.
func TestLinksIntoMainRepository(t *testing.T) {
	t.Parallel()
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		for name, attack := range linkAttacks {
			for _, confined := range []bool{false, true} {
				dir := gitRepository(t)
				rc := filepath.Join(dir, ".bashrc")
				if err := os.WriteFile(rc, []byte("# mine\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				cfg := Config{Dir: filepath.Join(dir, "linked"), Sandbox: Off}
				s, _ := newShell(t, cfg)
				if confined {
					s = shell(t, cfg)
				}
				run(t, s, sh(`C=$(git rev-parse --git-common-dir); `+strings.ReplaceAll(attack, "V", rc)))
				// A broken log is the workspace's affair; where the line goes is not.
				cmd := exec.Command("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "fix; touch pwned #")
				cmd.Dir = filepath.Join(dir, "main")
				out, _ := cmd.CombinedOutput()
				text, err := os.ReadFile(rc)
				if err != nil {
					t.Fatal(err)
				}
				if led := string(text) != "# mine\n"; led == confined {
					t.Errorf("%s, confined %v: git wrote outside: %v; %s", name, confined, led, out)
				}
			}
		}
	})
}

// TestAlternatesOfMainRepository: fetching, git asks the repositories that
// objects/info/alternates names for their refs, which can run a program of theirs.
func TestAlternatesOfMainRepository(t *testing.T) {
	t.Parallel()
	const attack = `C=$(git rev-parse --git-common-dir); mkdir -p $C/objects/info; echo $PWD/evil/objects >> $C/objects/info/alternates;
		mv $C/objects/info $C/objects/00 ; mkdir i; echo x > i/alternates; mv i $C/objects/info`
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		for _, confined := range []bool{false, true} {
			dir := gitRepository(t)
			cfg := Config{Dir: filepath.Join(dir, "linked"), Sandbox: Off}
			s, _ := newShell(t, cfg)
			if confined {
				s = shell(t, cfg)
			}
			run(t, s, sh(attack))
			found, _ := filepath.Glob(filepath.Join(dir, "main/.git/objects/*/alternates"))
			if (len(found) == 0) != confined {
				t.Errorf("confined %v: %v", confined, found)
			}
		}
	})
}

// TestLinkedWorktreeWorks: what people do in a worktree works although no links
// can be made in the main repository.
func TestLinkedWorktreeWorks(t *testing.T) {
	t.Parallel()
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		dir := gitRepository(t)
		s := shell(t, Config{Dir: filepath.Join(dir, "linked")})
		const identity = "set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n"
		for _, script := range []string{
			"echo y > g && git add g && git commit -qm two && git log --oneline | grep two",
			"git checkout -qb topic/one && echo z > h && git add h && git commit -qm three",
			"git reflog topic/one | grep three",
			"git checkout -q linked && echo w > i && git add i && git commit -qm four && git merge -q --no-edit topic/one",
			"git checkout -qb other HEAD~1 && echo v > j && git add j && git commit -qm five && git rebase -q linked",
			"git cherry-pick --allow-empty HEAD~1 || git cherry-pick --skip",
			"echo more >> g && git stash -q && git stash list | grep stash && git stash apply -q && git diff | grep more",
			"git tag v1 && git tag -m annotated v2 && git fsck --no-dangling",
			"git -c gc.auto=1 gc --auto -q || true; git repack -q; git fsck --no-dangling",
		} {
			if res := run(t, s, sh(identity+script)); res.ExitCode != 0 {
				t.Errorf("%s: %d %s %s %v", script, res.ExitCode, res.Stdout.Head, res.Stderr.Head, res.Refused)
			}
		}
		gitIn(t, filepath.Join(dir, "main"), "fsck", "--no-dangling")
		gitIn(t, filepath.Join(dir, "main"), "gc", "-q") // removes directories of objects that it emptied
		if res := run(t, s, sh(identity+"for i in 1 2 3 4 5 6 7 8; do git commit -q --allow-empty -m $i; done; git fsck")); res.ExitCode != 0 {
			t.Errorf("after gc in the main repository: %s %v", res.Stderr.Head, res.Refused)
		}
	})
}

// TestMainRepositoryIsExplained: no flag is offered that would open it whole.
func TestMainRepositoryIsExplained(t *testing.T) {
	t.Parallel()
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		s := shell(t, Config{Dir: filepath.Join(gitRepository(t), "linked")})
		for _, script := range []string{"git branch x && git branch -D x", "git config user.name n", "ln -s /x $(git rev-parse --git-common-dir)/logs/refs/l"} {
			res := run(t, s, sh(script))
			if told := strings.Join(res.Refused, "; "); res.ExitCode == 0 || !strings.Contains(told, "outside (deleting") || strings.Contains(told, "--allow") {
				t.Errorf("%s: %d %s: %s", script, res.ExitCode, res.Stderr.Head, told)
			}
		}
	})
}

// TestLinkLeftInMainRepository: what somebody left there before the session keeps
// commands from writing beside it, and doctor says why.
func TestLinkLeftInMainRepository(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		dir := gitRepository(t)
		link := filepath.Join(dir, "main/.git/refs/heads/left")
		if err := os.Symlink("/nowhere", link); err != nil {
			t.Fatal(err)
		}
		s := shell(t, Config{Dir: filepath.Join(dir, "linked")})
		if res := run(t, s, sh("git log --oneline -1 && ! git tag x")); res.ExitCode != 0 {
			t.Errorf("%s %s", res.Stdout.Head, res.Stderr.Head)
		}
		if !strings.Contains(fmt.Sprint(s.c.Policy()), "read only because of "+link) {
			t.Error("the policy does not say why")
		}
	})
}
