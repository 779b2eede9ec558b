//go:build amd64 || arm64

package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// aroundTop makes the directory that holds the workspace a repository in its place.
const aroundTop = `rm -rf .git; git -C .. init -q; git -C .. -c user.email=a@b -c user.name=n commit -q --allow-empty -m m; `

// atHome is what the user does, at home in the directory that holds the workspace.
const atHome = `unset GIT_CONFIG_GLOBAL; export HOME=${PWD%/ws}; `

// aroundAttacks change what the user's own settings, a repository around the workspace, or a
// git directory elsewhere take from the workspace.
var aroundAttacks = map[string]struct{ setup, attack, use string }{
	"hooks of the user's, relative":     {`mkdir h; git config -f ../.gitconfig core.hooksPath h`, `cp evil h/post-checkout`, atHome + checkOut},
	"hooks of the user's":               {`mkdir h; git config -f ../.gitconfig core.hooksPath '~/ws/h'`, `cp evil h/post-checkout`, atHome + checkOut},
	"in a nested repository":            {`git init -q n; mkdir n/h; git -C n -c user.email=a@b -c user.name=n commit -q --allow-empty -m m; git config -f ../.gitconfig core.hooksPath h`, `cp evil n/h/post-checkout`, atHome + "cd n; " + checkOut},
	"the user's hook is a link":         {`mkdir s ../h; echo '#!/bin/sh' > s/p; chmod +x s/p; ln -s ../ws/s/p ../h/post-checkout; git config -f ../.gitconfig core.hooksPath '~/h'`, `cp evil s/p`, atHome + checkOut},
	"the user includes":                 {`mkdir m; touch m/c; git config -f ../.gitconfig include.path ws/m/c`, settingsEvil + ` > m/c`, atHome + "git status"},
	"the way of what the user includes": {`mkdir d; touch d/c; ln -s d l; ln -s ws/l/c ../.gitconfig`, `rm l; mkdir l; ` + settingsEvil + ` > l/c`, atHome + "git status"},
	"the user's settings are a link":    {`mkdir m .g; touch m/config; mkdir ../.config; ln -s ../ws/m ../.config/git`, settingsEvil + ` > m/config`, atHome + "git status"},
	"templates":                         {`mkdir -p t/hooks; git config -f ../.gitconfig init.templateDir '~/ws/t'`, `cp evil t/hooks/post-checkout`, atHome + "git clone -q . ../c; git -C ../c checkout -q -b later"},
	"a repository around":               {aroundTop + `mkdir h; git -C .. config core.hooksPath ws/h`, `cp evil h/post-checkout`, "cd ..; " + checkOut},
	"a repository around, the way":      {aroundTop + `mkdir -p d/h; git -C .. config core.hooksPath ws/d/h`, `mv d e; mkdir -p d/h; cp evil d/h/post-checkout`, "cd ..; " + checkOut},
	"a repository around includes":      {aroundTop + `mkdir m; touch m/c; git -C .. config include.path ../ws/m/c`, settingsEvil + ` > m/c`, "git status"},
	"a repository around, its hook":     {aroundTop + `mkdir -p s ../.git/hooks; echo '#!/bin/sh' > s/p; chmod +x s/p; ln -s ../../ws/s/p ../.git/hooks/post-checkout`, `cp evil s/p`, "cd ..; " + checkOut},
	"a repository around, its hooks":    {aroundTop + `rm -rf ../.git/hooks; mkdir h; ln -s ../ws/h ../.git/hooks`, `cp evil h/post-checkout`, "cd ..; " + checkOut},
	"a .git that leads out":             {`mkdir h; mv .git ../g; ln -s ../g .git; git config core.hooksPath h`, `cp evil h/post-checkout`, checkOut},
	"a tree that settings name":         {`mkdir -p t/h; mv .git ../g; echo gitdir: ../g > .git; git config core.hooksPath h; git config core.worktree "$PWD/t"`, `cp evil t/h/post-checkout`, checkOut},
	"a remote without settings":         {``, `git init -q --bare b; mkdir -p b/hooks; cp evil b/hooks/pre-receive; mkdir -p .git/remotes; printf 'URL: %s/b\nPush: HEAD:refs/heads/x\n' "$PWD" > .git/remotes/origin`, "git push"},
	"a branch without settings":         {`rm -rf .git/branches`, `git init -q --bare b; mkdir -p b/hooks; cp evil b/hooks/pre-receive; mkdir -p .git/branches; echo "$PWD/b" > .git/branches/origin`, "git push"},
	"a repository in a .git":            {`git init -q --bare .git/wiki.git`, `printf '[core]\nbare = false\nworktree = /\nfsmonitor = %s/evil\n' "$PWD" >> .git/wiki.git/config`, "git --git-dir=.git/wiki.git status"},
	"a hook by another name":            {`mkdir s .git/hooks; echo '#!/bin/sh' > s/p; chmod +x s/p; ln s/p .git/hooks/post-checkout`, `cat evil > s/p`, checkOut},
}

// TestGitAroundIsGuarded carries the attacks out without the sandbox, where each must
// succeed, and in a cell.
func TestGitAroundIsGuarded(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	newPlace(t).isolator(t, true)
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "GIT_CONFIG_SYSTEM"} {
		t.Setenv(name, "")
	}
	for name, c := range aroundAttacks {
		t.Run(name, func(t *testing.T) {
			free, p := linked(t, c.setup), linked(t, c.setup)
			free.mustSh(t, c.attack)
			if !free.usedBy(t, c.use) {
				t.Fatal("without the sandbox nothing ran: this proves nothing")
			}
			t.Setenv("HOME", filepath.Dir(p.ws))
			out, _ := p.inSh(t, p.isolator(t, true), c.attack)
			if p.usedBy(t, c.use) {
				t.Errorf("it ran: %s", out)
			}
		})
	}
}

// TestHomeAsWorkspace: the user's settings that do not exist yet are not made by commands.
func TestHomeAsWorkspace(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	newPlace(t).isolator(t, true)
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "GIT_CONFIG_SYSTEM"} {
		t.Setenv(name, "")
	}
	const use = `unset GIT_CONFIG_GLOBAL; HOME=$PWD git status`
	for _, attack := range []string{settingsEvil + ` > .gitconfig`, `mv .config c; mkdir -p .config/git; ` + settingsEvil + ` > .config/git/config`} {
		free, p := linked(t, ""), linked(t, "")
		free.mustSh(t, attack)
		if !free.usedBy(t, use) {
			t.Fatal("without the sandbox nothing ran: this proves nothing")
		}
		t.Setenv("HOME", p.ws)
		if out, _ := p.inSh(t, p.isolator(t, true), attack); p.usedBy(t, use) {
			t.Errorf("%s: it ran: %s", attack, out)
		}
	}
}

// TestLinksOfOtherSessions: a link that a command of one session has made counts as nobody's
// own in another that begins meanwhile, which would put it back.
func TestLinksOfOtherSessions(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	newPlace(t).isolator(t, true)
	for name, setup := range map[string]string{"at the top": "", "nested": `git init -q n; mv .git ../unused; rm -rf n/.git; mv ../unused n/.git`} {
		p := linked(t, setup)
		git := filepath.Join(p.ws, ".git")
		if name == "nested" {
			git = filepath.Join(p.ws, "n/.git")
		}
		first := p.isolator(t, true)
		p.inSh(t, first, "true")
		link := filepath.Join(git, "COMMIT_EDITMSG")
		must(t, replaceLink(link, "../../victim")) // as a command does that runs
		second := p.isolator(t, true)
		p.inSh(t, first, "true")
		p.inSh(t, second, `ln -sfn elsewhere `+link)
		must(t, second.Close())
		must(t, first.Close())
		if to, err := os.Readlink(link); err == nil {
			t.Errorf("%s: a link to %s is left", name, to)
		}
	}
}

func replaceLink(link, to string) error {
	_ = os.Remove(link)
	return os.Symlink(to, link)
}
