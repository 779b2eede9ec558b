//go:build amd64 || arm64

package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestLinksThatMoveIn: a link that is older than every open session counts as the user's own
// only where it has been in git's data since, not if a command has moved its directory there.
func TestLinksThatMoveIn(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	newPlace(t).isolator(t, true)
	p := linked(t, "")
	earlier := p.isolator(t, true)
	p.inSh(t, earlier, `mkdir -p new/d; ln -s ../../../victim new/HEAD; ln -s ../../../../victim new/d/HEAD`)
	must(t, earlier.Close())
	const move = `mv .git/logs old; mv new .git/logs`
	first := p.isolator(t, true)
	p.inSh(t, first, "true")
	p.mustSh(t, move) // as a command does that runs
	second := p.isolator(t, true)
	must(t, first.Close())
	p.inSh(t, second, `mkdir -p .git/logs/d; ln -s ../../../victim .git/logs/HEAD; ln -s ../../../../victim .git/logs/d/HEAD`)
	must(t, second.Close())
	for _, link := range []string{"HEAD", "d/HEAD"} {
		if to, err := os.Readlink(filepath.Join(p.ws, ".git/logs", link)); err == nil {
			t.Errorf("a link %s to %s is left", link, to)
		}
	}
}

// TestLinksOfAServerThatDied: the next session removes what the commands of one have left that
// had no time to end.
func TestLinksOfAServerThatDied(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	p := linked(t, "")
	died := p.isolator(t, true)
	p.inSh(t, died, "true")
	lock, err := os.ReadFile(filepath.Join(p.ws, ".git/config.lock"))
	must(t, err)
	must(t, died.Close())
	must(t, os.WriteFile(filepath.Join(p.ws, ".git/config.lock"), lock, 0o444)) // as it was left
	link := filepath.Join(p.ws, ".git/COMMIT_EDITMSG")
	must(t, replaceLink(link, "../../victim"))
	time.Sleep(50 * time.Millisecond) // the clock of files is coarse
	next := p.isolator(t, true)
	p.inSh(t, next, "true")
	must(t, next.Close())
	if to, err := os.Readlink(link); err == nil {
		t.Errorf("a link to %s is left", to)
	}
}
