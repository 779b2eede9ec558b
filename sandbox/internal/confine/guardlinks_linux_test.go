//go:build amd64 || arm64

package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
)

// settingsEvil is what has git run the program evil.
const settingsEvil = `printf '[core]\nfsmonitor = %s/evil\n' "$PWD"`

// linkAttacks have git run evil, or write outside of the workspace, where the user's own
// repository takes settings, hooks or data from elsewhere, or a command makes a link.
var linkAttacks = map[string]struct{ setup, attack, use string }{
	"hooks are a link":           {`rm -rf .git/hooks; mkdir h; ln -s ../h .git/hooks`, `rm .git/hooks; mkdir .git/hooks; cp evil .git/hooks/post-checkout`, checkOut},
	"where hooks lead":           {`rm -rf .git/hooks; mkdir h; ln -s ../h .git/hooks`, `cp evil h/post-checkout`, checkOut},
	"the way of hooks":           {`rm -rf .git/hooks; mkdir -p d/h; ln -s ../d/h .git/hooks`, `mv d e; mkdir -p d/h; cp evil d/h/post-checkout`, checkOut},
	"hooks by two links":         {`rm -rf .git/hooks; mkdir h; ln -s h l; ln -s "$PWD/l" .git/hooks`, `rm l; mkdir l; cp evil l/post-checkout`, checkOut},
	"a hook is a link":           {`mkdir -p s .git/hooks; echo '#!/bin/sh' > s/p; chmod +x s/p; ln -s ../../s/p .git/hooks/post-checkout`, `cp evil s/p`, checkOut},
	"settings are a link":        {`mv .git/config conf; ln -s ../conf .git/config`, settingsEvil + ` >> conf`, "git status"},
	"data is a link":             {`mkdir s; mv .git/refs s/; ln -s ../s/refs .git/refs`, `rm .git/refs; ` + bareAtTop, "git status"},
	"the way of a .git file":     {`mkdir -p d; mv .git d/g; echo gitdir: d/g > .git`, `mv d e; cp -r e d; git config -f d/g/config core.fsmonitor "$PWD/evil"`, "git status"},
	"the way of a .git link":     {`mkdir -p d; mv .git d/g; ln -s d/g .git`, `mv d e; cp -r e d; git config -f d/g/config core.fsmonitor "$PWD/evil"`, "git status"},
	"hooksPath, a comment":       {`mkdir h; printf '[core]\n\thooksPath = h # ours\n' >> .git/config`, `cp evil h/post-checkout`, checkOut},
	"hooksPath, quotes":          {`mkdir "h k"; printf '[core]\n\thooksPath = "h "k;ours\n' >> .git/config`, `cp evil "h k/post-checkout"`, checkOut},
	"hooksPath of a worktree":    {`mkdir h; git config extensions.worktreeConfig true; git config --worktree core.hooksPath h`, `cp evil h/post-checkout`, checkOut},
	"hooksPath in .git":          {`mkdir .git/mine; git config core.hooksPath .git/mine`, `cp evil .git/mine/post-checkout`, checkOut},
	"included by included":       {`mkdir m n; touch m/b; printf '[include]\npath = ../m/b' > n/a; git config include.path ../n/a`, settingsEvil + ` > m/b`, "git status"},
	"the message":                {``, `ln -sf config .git/COMMIT_EDITMSG; ` + settingsEvil + ` > .git/MERGE_MSG; echo y > f; git add f`, "GIT_EDITOR=true git commit; git status"},
	"the message outside":        {``, `ln -sf ../../victim .git/COMMIT_EDITMSG; echo y > f; git add f`, "git commit -qm evil; touched"},
	"the log":                    {``, `rm .git/logs/HEAD; ln -s ../../../victim .git/logs/HEAD`, "touch ../victim; git commit -q --allow-empty -m evil; touched"},
	"the log, closed to readers": {``, `rm .git/logs/HEAD; ln -s ../../../victim .git/logs/HEAD; chmod 0300 .git/logs`, "touch ../victim; git commit -q --allow-empty -m evil; touched; chmod 700 .git/logs"},
	"the log, closed to writers": {``, `rm .git/logs/HEAD; ln -s ../../../victim .git/logs/HEAD; chmod 0500 .git/logs`, "touch ../victim; git commit -q --allow-empty -m evil; touched; chmod 700 .git/logs"},
	"the logs of branches":       {``, `rm -r .git/logs; mkdir .git/logs; ln -s ../../.. .git/logs/refs`, "git branch victim; mv ../heads/victim ..; touched"},
	"the index":                  {``, `rm .git/index; ln -s ../../victim .git/index`, "git add f; touched"},
	"packs":                      {``, `rm -rf .git/objects/pack; ln -s ../../.. .git/objects/pack`, "git gc -q; mv ../pack-*.pack ../victim; touched"},
	"the graph of commits":       {``, `mkdir -p .git/objects/info; ln -s ../../../../victim .git/objects/info/commit-graph`, "git gc -q; touched"},
	"the graphs of commits":      {``, `mkdir -p .git/objects/info/commit-graphs; ln -s ../../../../../victim .git/objects/info/commit-graphs/commit-graph-chain`, "git commit-graph write --reachable --split; touched"},
	"the index of packs":         {`git gc -q`, `ln -s ../../../../victim .git/objects/pack/multi-pack-index`, "git multi-pack-index write; touched"},
	"locks of LFS":               {``, `mkdir -p .git/lfs/cache/locks; ln -s ../../../../../victim .git/lfs/cache/locks/verifiable`, "echo {} > .git/lfs/cache/locks/verifiable; touched"},
	"the parts of a worktree":    {`git worktree add -q tree`, `ln -sf ../../../../victim .git/worktrees/tree/COMMIT_EDITMSG`, "git -C tree commit -q --allow-empty -m evil; touched"},
}

const checkOut = "git checkout -q -b later"

// TestGitLinksAreGuarded carries the attacks out without the sandbox, where each must
// succeed, and in a cell.
func TestGitLinksAreGuarded(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	newPlace(t).isolator(t, true)
	carryOut(t, linkAttacks)
}

func carryOut(t *testing.T, attacks map[string]struct{ setup, attack, use string }) {
	for name, c := range attacks {
		t.Run(name, func(t *testing.T) {
			free, p := linked(t, c.setup), linked(t, c.setup)
			free.mustSh(t, c.attack)
			if !free.usedBy(t, c.use) {
				t.Fatal("without the sandbox nothing ran: this proves nothing")
			}
			session := p.isolator(t, true)
			out, _ := p.inSh(t, session, c.attack)
			if p.usedBy(t, c.use) {
				t.Errorf("it ran: %s", out)
			}
		})
	}
}

// linked makes a workspace with a repository, below a directory of its own.
func linked(t *testing.T, setup string) place {
	t.Helper()
	p := newPlace(t)
	p.mustSh(t, `git init -q . && echo x > f && git add f && git -c user.email=a@b -c user.name=n commit -qm m
printf '#!/bin/sh\ntouch '$PWD/ran'\n' > evil && chmod +x evil; `+setup)
	return p
}

// usedBy reports whether what the user does with git ran evil, or wrote outside.
func (p place) usedBy(t *testing.T, use string) bool {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `touched() { test -s ../victim && touch ran; }; `+use)
	cmd.Dir = p.ws
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=a@b")
	_ = cmd.Run()
	_, err := os.Stat(filepath.Join(p.ws, "ran"))
	return err == nil
}

// TestLinksOfTheUserStay: links that were in a repository before any command are there
// afterwards, and lead where they led.
func TestLinksOfTheUserStay(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	p := linked(t, `mkdir s; touch s/refs; ln -s ../s/refs .git/packed-refs; mv .git/logs s/; ln -s ../s/logs .git/logs`)
	out, _ := p.inSh(t, p.isolator(t, true), `rm .git/packed-refs; ln -s /elsewhere .git/packed-refs; ln -s /elsewhere .git/new; git branch b`)
	for name, want := range map[string]string{"packed-refs": "../s/refs", "logs": "../s/logs", "new": ""} {
		if to, _ := os.Readlink(filepath.Join(p.ws, ".git", name)); to != want {
			t.Errorf("%s leads to %q, not to %q: %s", name, to, want, out)
		}
	}
}

// TestGuardWaitsForNoPipe: a named pipe where settings name a file does not keep the next
// session from beginning.
func TestGuardWaitsForNoPipe(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	p := linked(t, `git config include.path ../later`)
	if out, status := p.inSh(t, p.isolator(t, true), `mkfifo later`); status != 0 {
		t.Fatal(out)
	}
	if out, status := p.inSh(t, p.isolator(t, true), `echo y > y`); status != 0 {
		t.Error(out)
	}
}

// TestWorkspaceStaysWhereItIs: commands that may write what holds the workspace do not put
// another one in its place.
func TestWorkspaceStaysWhereItIs(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	attack := `cd .. && mv ws w && cp -r w ws && cd ws && ` + settingsEvil + ` >> .git/config`
	free, p := linked(t, ""), linked(t, "")
	free.mustSh(t, attack)
	if !free.usedBy(t, "git status") {
		t.Fatal("without the sandbox nothing ran: this proves nothing")
	}
	allowed := p.policy()
	allowed.Write = append(allowed.Write, filepath.Dir(p.ws))
	i, err := namespaces.NewWith(namespaces.Isolation{Policy: allowed, Workspace: p.ws, Guard: true}, kernel.Features{Landlock: kernel.LandlockABI()})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { must(t, i.Close()) })
	if out, _ := p.inSh(t, i, attack); p.usedBy(t, "git status") {
		t.Errorf("it ran: %s", out)
	}
	if out, status := p.inSh(t, i, `touch ../beside`); status != 0 {
		t.Error(out)
	}
}
