//go:build amd64 || arm64

package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
)

// gitAttacks make git run a program for its user: each leaves the file ran when
// somebody uses git in the workspace, or in a repository in it, afterwards.
var gitAttacks = map[string]string{
	"config":           `git config core.fsmonitor "$PWD/evil"`,
	"config replaced":  `cp .git/config c && printf '[core]\nfsmonitor = %s/evil\n' "$PWD" >> c && mv -f c .git/config`,
	"hooks":            `mkdir -p .git/hooks; cp evil .git/hooks/post-checkout`,
	"hooks moved":      `mv .git/hooks h; mkdir .git/hooks && cp evil .git/hooks/post-checkout`,
	".git moved":       `mv .git g && cp -r g .git && git config core.fsmonitor "$PWD/evil"`,
	"worktree config":  `printf '[core]\nfsmonitor = %s/evil\n' "$PWD" > .git/config.worktree`,
	"nested":           `git -C sub config core.fsmonitor "$PWD/evil"`,
	"commondir":        `cp -r .git evil.d && git config -f evil.d/config core.fsmonitor "$PWD/evil" && echo ../evil.d > .git/commondir`,
	"behind a file":    `git config -f bare/config core.fsmonitor "$PWD/evil"`,
	"behind a link":    `git config -f really/config core.fsmonitor "$PWD/evil"`,
	"another link":     `rm link/.git; cp -r really link/.git; git -C link config core.fsmonitor "$PWD/evil"`,
	"a worktree":       `cp -r .git w; rm -f w/commondir; git config -f w/config core.fsmonitor "$PWD/evil"; echo $PWD/w > .git/worktrees/tree/commondir`,
	"named":            `git config -f named/settings core.fsmonitor "$PWD/evil"`,
	"forged above":     `mkdir objects refs; echo > HEAD; git -C sub config core.fsmonitor "$PWD/evil"`,
	"own config":       `printf '[core]\nfsmonitor = %s/evil\n' "$PWD" > .git/worktrees/tree/config.worktree`,
	"no HEAD":          `rm .git/HEAD; ` + bareAtTop,
	"bad HEAD":         `echo nothing > .git/HEAD; ` + bareAtTop,
	"HEAD a directory": `rm .git/HEAD; mkdir .git/HEAD; ` + bareAtTop,
	"no objects":       `mv .git/objects .git/o; ` + bareAtTop,
	"no HEAD below":    `cd sub; rm .git/HEAD; evil=$PWD/../evil; ` + bareAtTop,
	"named by a link":  `rm way && mkdir -p way && git config -f way/settings core.fsmonitor "$PWD/evil"`,
	"named moved":      `mv named n && mkdir named && git config -f named/settings core.fsmonitor "$PWD/evil"`,
	"a .git file":      `mkdir e && git -C e init -q && git -C e config core.fsmonitor "$PWD/evil" && echo "gitdir: $PWD/e/.git" > file/.git`,
}

// bareAtTop has git find a repository in the directory itself, once its .git is none.
const bareAtTop = `mkdir -p objects refs; echo ref: refs/heads/x > HEAD
printf '[core]\nrepositoryformatversion = 0\nbare = false\nworktree = %s\nfsmonitor = %s\n' "$PWD" "${evil-$PWD/evil}" > config`

// repository makes a workspace with repositories of each kind.
func repository(t *testing.T) place {
	t.Helper()
	p := newPlace(t)
	p.mustSh(t, `export GIT_CONFIG_GLOBAL=/dev/null; g() { git -c user.email=a@b -c user.name=n "$@"; }
git init -q . && echo x > f && git add f && g commit -qm m && git config extensions.worktreeConfig true && rm -rf .git/hooks
git init -q sub && mkdir real file && git init -q real && mv real/.git realgit && echo "gitdir: $PWD/realgit" > file/.git
git init -q --bare bare && git --git-dir=bare config core.bare false && mkdir by && echo "gitdir: ../bare" > by/.git
mkdir link && git init -q --separate-git-dir=really link && rm link/.git && ln -s ../really link/.git && git worktree add -q tree
mkdir -p named far && touch named/settings far/settings && ln -s far way && git config include.path ../named/settings && git config --add include.path ../way/settings
printf '#!/bin/sh\ntouch '$PWD/ran'\n' > evil && chmod +x evil`)
	return p
}

func (p place) mustSh(t *testing.T, script string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = p.ws
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
}

// used reports whether the user's git ran what an attack had left.
func (p place) used(t *testing.T) bool {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "for d in . sub file by link tree; do (cd $d && git status && git checkout -q -b later); done")
	cmd.Dir = p.ws
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	_ = cmd.Run()
	_, err := os.Stat(filepath.Join(p.ws, "ran"))
	return err == nil
}

// TestGitIsGuarded carries the attacks out without the sandbox, where each must
// succeed, and in a cell.
func TestGitIsGuarded(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	newPlace(t).isolator(t, true)
	for name, attack := range gitAttacks {
		t.Run(name, func(t *testing.T) {
			free := repository(t)
			free.mustSh(t, attack)
			if !free.used(t) {
				t.Fatal("without the sandbox nothing ran: this proves nothing")
			}
			p := repository(t)
			out, _ := p.inSh(t, p.isolator(t, true), attack)
			if p.used(t) {
				t.Errorf("it ran: %s", out)
			}
		})
	}
}

// TestGuardFindsWhatIsHidden: what a command of an earlier session has made unreadable, or
// has made look like no repository, is guarded with all that it holds.
func TestGuardFindsWhatIsHidden(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	newPlace(t).isolator(t, true)
	const show = `chmod 755 sub; git -C sub config core.fsmonitor "$PWD/evil"`
	for first, attack := range map[string]string{
		"chmod 0300 sub": show, "chmod 0100 sub": show, "chmod 0000 sub": show,
		"cd bare; mv HEAD h; mv objects o; mv refs r; true": `git config -f bare/config core.fsmonitor "$PWD/evil"; cd bare; mv h HEAD; mv o objects; mv r refs`, // which stay, but for HEAD
	} {
		free, p := repository(t), repository(t)
		free.mustSh(t, first)
		free.mustSh(t, attack)
		if !free.used(t) {
			t.Fatalf("%s: without the sandbox nothing ran: this proves nothing", first)
		}
		session := p.isolator(t, true)
		if out, status := p.inSh(t, session, first); status != 0 {
			t.Fatal(first, out)
		}
		must(t, session.Close())
		out, _ := p.inSh(t, p.isolator(t, true), attack)
		if p.used(t) {
			t.Errorf("%s: it ran: %s", first, out)
		}
		must(t, os.Chmod(filepath.Join(p.ws, "sub"), 0o755)) // for who clears up
	}
}

// TestGuardedGitWorks: what git does with its data goes on working.
func TestGuardedGitWorks(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	p := repository(t)
	out, status := p.inSh(t, p.isolator(t, true), `set -e; export GIT_CONFIG_GLOBAL=$HOME/.gitconfig
git config --global user.email a@b; git config --global user.name n
echo y > g && git add g && git commit -qm two && git checkout -qb topic && echo z > h && git add h && git commit -qm three
git checkout -q - && echo w > i && git add i && git commit -qm four && git merge -q --no-edit topic && git checkout -q topic && git rebase -q -
git stash list && git tag v1 && git gc -q && git reset -q --hard HEAD~1 && git log --oneline | wc -l
git -C sub commit -q --allow-empty -m s && git -C sub log --oneline | wc -l`)
	if status != 0 {
		t.Errorf("%v %s", status, out)
	}
}

// TestGitDataNeedsLandlock: where nothing keeps links out of a place of git's, all
// of it is read only.
func TestGitDataNeedsLandlock(t *testing.T) {
	if kernel.LandlockABI() == 0 {
		t.Skip("no Landlock")
	}
	newPlace(t).isolator(t, false)
	for _, abi := range []int{0, kernel.LandlockABI()} {
		p := newPlace(t)
		pinned := p.policy().Pin()
		t.Cleanup(pinned.Close)
		with, release := pinned.With(nil, []string{p.outside}, "git's")
		t.Cleanup(release)
		with.OfGit(map[string]policy.Kind{p.outside: policy.GitData})
		i, err := namespaces.NewWith(namespaces.Isolation{Policy: with, Workspace: p.ws}, kernel.Features{Landlock: abi})
		must(t, err)
		t.Cleanup(func() { i.Close() })
		if out, status := p.inSh(t, i, "touch "+p.outside+"/f"); (status == 0) != (abi > 0) {
			t.Errorf("abi %d: a file: %v %s", abi, status, out)
		}
		if out, status := p.inSh(t, i, "ln -s f "+p.outside+"/l"); status == 0 {
			t.Errorf("abi %d: a link: %s", abi, out)
		}
	}
}

// TestClosedDirectoriesAreGuarded: a repository that could not be looked into when the
// session began is not opened by commands, which own it.
func TestClosedDirectoriesAreGuarded(t *testing.T) {
	for _, mode := range []string{"0", "0400", "0100"} {
		p := newPlace(t)
		p.mustSh(t, "mkdir -p closed/sub/.git/objects closed/sub/.git/refs && echo x > closed/sub/.git/config && chmod "+mode+" closed")
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(p.ws, "closed"), 0o700) })
		p.inSh(t, p.isolator(t, true), "chmod 700 closed; echo evil > closed/sub/.git/config")
		must(t, os.Chmod(filepath.Join(p.ws, "closed"), 0o700))
		if text, err := os.ReadFile(filepath.Join(p.ws, "closed/sub/.git/config")); string(text) != "x\n" {
			t.Errorf("%s: %q %v", mode, text, err)
		}
	}
}
