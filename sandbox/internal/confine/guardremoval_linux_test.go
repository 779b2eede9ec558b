//go:build amd64 || arm64

package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestRemovalOfLinksStaysInside: while links are removed from git's data, a command puts a
// link in the way, by which the server would remove links of the user's.
func TestRemovalOfLinksStaysInside(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	p := linked(t, `mkdir -p perstack/x; ln -s ../../f perstack/x/mine; mkdir -p .git/logs/a/x; cd .git/logs; for d in $(seq 4000); do mkdir $d; done`)
	i := p.isolator(t, true)
	const swap = `cd .git/logs; echo ready; while test ! -e ../../over; do mv a b; ln -s ../../perstack a; sleep 0.02; rm -f a; mv b a; sleep 0.02; done`
	_, swapper := p.begin(t, i, nil, "/bin/sh", "-c", swap)
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); {
		_ = i.Fallen()
	}
	must(t, os.WriteFile(filepath.Join(p.ws, "over"), nil, 0o644))
	swapper.Wait()
	if _, err := os.Lstat(filepath.Join(p.ws, "perstack/x/mine")); err != nil {
		t.Error(err)
	}
}
