//go:build amd64 || arm64

package confine

import (
	"os/exec"
	"testing"
)

// namedAttacks replace what settings name in the workspace, in each way that git finds it.
var namedAttacks = map[string]struct{ setup, attack, use string }{
	"below home":           {`mkdir h; echo '[core] hooksPath = ~/ws/h' >> .git/config`, `cp evil h/post-checkout`, `HOME=${PWD%/ws}; ` + checkOut},
	"a tab":                {`mkdir "h k"; printf '[core]\n\thooksPath = h\tk\n' >> .git/config`, `cp evil "h k/post-checkout"`, checkOut},
	"a blank at the end":   {`mkdir "h "; printf '[core]\n\thooksPath = "h "\n' >> .git/config`, `cp evil "h /post-checkout"`, checkOut},
	"the next line":        {`mkdir h; printf '[core]\n\thooksPath = \\\n\t  h\n' >> .git/config`, `cp evil h/post-checkout`, checkOut},
	"empty quotes":         {`mkdir h; printf '[core]\n\thooksPath = ""  h\n' >> .git/config`, `cp evil h/post-checkout`, checkOut},
	"by a link outside":    {`mkdir h; ln -s $PWD ../link; git config core.hooksPath "${PWD%/ws}/link/h"`, `cp evil h/post-checkout`, checkOut},
	"out and in":           {`mkdir h; git config core.hooksPath ../ws/h`, `cp evil h/post-checkout`, checkOut},
	"by a link and back":   {`mkdir -p d/e h d/h; ln -s d/e l; git config core.hooksPath l/../h`, `cp evil d/h/post-checkout`, checkOut},
	"included from home":   {`printf '[core]\n\thooksPath = h\n' > ../mine; mkdir h; git config include.path ../../mine`, `cp evil h/post-checkout`, checkOut},
	"in a linked worktree": {`git worktree add -q tree; mkdir tree/h; git config core.hooksPath h`, `cp evil tree/h/post-checkout`, "cd tree; " + checkOut},
	"of its main repository": {`cd ..; mv ws main; git -C main worktree prune; git -C main worktree add -q -b other ../ws; cp main/evil ws; mkdir ws/h; git -C main config core.hooksPath h`,
		`cp evil h/post-checkout`, checkOut},
	"in a nested repository": {`git init -q n; mkdir n/h; git -C n config core.hooksPath h; git -C n -c user.email=a@b -c user.name=n commit -q --allow-empty -m m`,
		`cp evil n/h/post-checkout`, "cd n; " + checkOut},
	"when somebody pushes": {`mkdir h; git config core.hooksPath h; git clone -q . ../clone`, `mkdir -p .git/h; cp evil .git/h/post-receive`, "git -C ../clone push -q origin HEAD:new"},
	"when somebody pushes, bare": {`git clone -q --bare . b.git; git -C b.git config core.hooksPath h; mkdir b.git/h; git clone -q b.git ../clone`,
		`cp evil b.git/h/post-receive`, "git -C ../clone push -q origin HEAD:new"},
}

// TestGitNamesAreGuarded carries the attacks out without the sandbox, where each must
// succeed, and in a cell.
func TestGitNamesAreGuarded(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	newPlace(t).isolator(t, true)
	carryOut(t, namedAttacks)
}

// TestNestedNamesStayInside: a repository that commands make names nothing around it, which
// would be read only in later sessions, nor has commands refused.
func TestNestedNamesStayInside(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	p := linked(t, `mkdir src`)
	if out, status := p.inSh(t, p.isolator(t, true), `git init -q n; git -C n config core.hooksPath ../src; git -C n config --add include.path "$PWD/f"; git -C n config --add include.path ../l; ln -s nothing n/l`); status != 0 {
		t.Fatal(out)
	}
	if out, status := p.inSh(t, p.isolator(t, true), `touch src/new && echo y > f && git add f`); status != 0 {
		t.Error(out)
	}
}
