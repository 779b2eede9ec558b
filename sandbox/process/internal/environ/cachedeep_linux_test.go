package environ

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
	"golang.org/x/sys/unix"
)

// TestDeepTreeInTheCache: a tree of more levels than the server may have files open, which
// a command has put where a link of ours belongs, goes, and takes no descriptors from others.
func TestDeepTreeInTheCache(t *testing.T) {
	home, cache := t.TempDir(), t.TempDir()
	filetest.Put(t, filepath.Join(home, ".npm/_cacache/content-v2/x"), "x")
	at := filepath.Join(cache, "npm-offline/_cacache/content-v2")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	const few = 256
	dir, err := os.OpenRoot(at)
	for range 4 * few {
		if err != nil {
			t.Fatal(err)
		}
		if err = dir.Mkdir("d", 0o700); err == nil {
			above := dir
			dir, err = dir.OpenRoot("d")
			above.Close()
		}
	}
	dir.Close()
	less := limit
	less.Cur = few
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &less); err != nil {
		t.Fatal(err)
	}
	ForCache(cache, []string{"HOME=" + home}, Host{})
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(at, "x")); string(text) != "x" {
		t.Errorf("what the user's npm has downloaded is not found: %v", err)
	}
}
