package scratch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
	"golang.org/x/sys/unix"
)

// TestOthersCacheThatStays: what was left of the cache of a workspace that was at the path
// before, and cannot be removed, serves nobody.
func TestOthersCacheThatStays(t *testing.T) {
	filetest.OwnCaches(t)
	workspace := filepath.Join(t.TempDir(), "ws")
	open := func() *Cache {
		t.Helper()
		if err := os.Mkdir(workspace, 0o700); err != nil {
			t.Fatal(err)
		}
		c, err := OpenCache(NewWorkdirs(workspace))
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
		return c
	}
	first := open()
	poison := filepath.Join(first.Dir(), "go-build", "poison")
	filetest.Put(t, poison, "x")
	free := keepForever(t, filepath.Dir(poison))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(workspace, workspace+".moved"); err != nil {
		t.Fatal(err)
	}
	if c := open(); c != nil && filetest.Exists(poison) {
		t.Error("another workspace at the path gets what the first has left")
	}
	free()
	if err := os.Rename(workspace, workspace+".too"); err != nil {
		t.Fatal(err)
	}
	if c := open(); c == nil || filetest.Exists(poison) {
		t.Error("what can be removed is not, or does not serve then")
	}
}

// keepForever keeps a directory's entries from being removed until free is called, also
// from root, where the file system can.
func keepForever(t *testing.T, dir string) (free func()) {
	t.Helper()
	const immutable = 0x10 // FS_IMMUTABLE_FL
	set := func(flags int) error {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
	}
	if err := set(immutable); err != nil {
		t.Skip("nothing can be made to stay here: ", err)
	}
	free = func() { _ = set(0) }
	t.Cleanup(free)
	return free
}
