//go:build amd64 || arm64

package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDecoys: the user's repositories are guarded however many others commands make in
// places where they are found sooner.
func TestDecoys(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	p := linked(t, `mkdir -p a/b/c; mv .git f a/b/c/`)
	earlier := p.isolator(t, true)
	p.inSh(t, earlier, `for i in $(seq 1100); do mkdir -p d$i/.git; done`)
	must(t, earlier.Close())
	session := p.isolator(t, true)
	link := filepath.Join(p.ws, "a/b/c/.git/COMMIT_EDITMSG")
	out, status := p.inSh(t, session, `ln -sfn ../../../../../victim a/b/c/.git/COMMIT_EDITMSG`)
	if status != 0 {
		t.Fatal(out)
	}
	must(t, session.Close())
	if to, err := os.Readlink(link); err == nil {
		t.Errorf("a link to %s is left", to)
	}
}
