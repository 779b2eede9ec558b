//go:build linux

package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
)

// openCache opens the cache of a workspace of that name, until the test ends or it
// is closed.
func openCache(t *testing.T, workspace string) (*Workdirs, *Cache) {
	t.Helper()
	trees := NewWorkdirs(workspace)
	c, err := OpenCache(trees)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return trees, c
}

// TestClearCache: what is used stays; else everything goes, also below directories
// that are not writable, and nothing that a link leads to.
func TestClearCache(t *testing.T) {
	filetest.OwnCaches(t)
	trees, c := openCache(t, "/some/workspace")
	precious := filepath.Join(t.TempDir(), "precious")
	filetest.Put(t, precious, "x")
	filetest.Put(t, filepath.Join(c.Dir(), "mod", "deep", "file"), "content")
	for link, target := range map[string]string{"link": precious, "mod/deep/dir": filepath.Dir(precious)} {
		if err := os.Symlink(target, filepath.Join(c.Dir(), link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(c.Dir(), "mod", "deep"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := trees.ClearCache(); !errors.Is(err, ErrCacheInUse) {
		t.Errorf("while in use: %v", err)
	}
	uses := trees.Caches()
	if len(uses) != 1 || uses[0].Workspace != "/some/workspace" || uses[0].Bytes != int64(len("content")) || uses[0].Dir != c.Dir() {
		t.Errorf("caches: %+v", uses)
	}
	_ = c.Close()
	if err := trees.ClearCache(); err != nil {
		t.Error(err)
	}
	if filetest.Exists(c.Dir()) || !filetest.Exists(precious) {
		t.Errorf("after clearing: cache there %v, link's target there %v", filetest.Exists(c.Dir()), filetest.Exists(precious))
	}
	if err := trees.ClearCache(); err != nil {
		t.Errorf("clearing what is empty: %v", err)
	}
}

// TestSweepCaches: the oldest of too much goes, and what nobody used for long; what
// is in use stays, and when it is alone too large it goes before its next use.
func TestSweepCaches(t *testing.T) {
	filetest.OwnCaches(t)
	caches := map[string]*Cache{}
	for i, name := range []string{"busy", "new", "middle", "old"} {
		trees, c := openCache(t, "/"+name)
		filetest.Put(t, filepath.Join(c.Dir(), "file"), strings.Repeat("x", 100))
		used := time.Now().Add(-time.Duration(i) * 24 * time.Hour)
		top, err := trees.open()
		if err != nil {
			t.Fatal(err)
		}
		if err := top.Chtimes(cacheLock, used, used); err != nil {
			t.Fatal(err)
		}
		if name != "busy" {
			_ = c.Close()
		}
		caches[name] = c
	}
	left := func() (names []string) {
		for name, c := range caches {
			if filetest.Exists(c.Dir()) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	trees := NewWorkdirs("/busy")
	for _, step := range []struct {
		limit int64
		since time.Duration
		want  string
	}{
		{400, 96 * time.Hour, "busy middle new old"},
		{400, 60 * time.Hour, "busy middle new"},
		{250, 60 * time.Hour, "busy new"},
		{50, 60 * time.Hour, "busy"},
	} {
		trees.eachBase(func(base *os.Root) { sweepCaches(base, trees.Caches(), step.limit, time.Now().Add(-step.since)) })
		if got := strings.Join(left(), " "); got != step.want {
			t.Errorf("with %d bytes and %s: %s are left, not %s", step.limit, step.since, got, step.want)
		}
	}
	_ = caches["busy"].Close()
	_, again := openCache(t, "/busy")
	if filetest.Exists(filepath.Join(again.Dir(), "file")) {
		t.Error("a cache that is alone too large is not cleared before its next use")
	}
	filetest.Put(t, filepath.Join(again.Dir(), "file"), "x")
	trees.SweepCaches()
	if _, once := openCache(t, "/busy"); !filetest.Exists(filepath.Join(once.Dir(), "file")) {
		t.Error("a cache within bounds is cleared")
	}
}

// TestDeepCache: a tree of more levels than any tool makes is not walked to its end,
// counts as too large, and goes with the cache.
func TestDeepCache(t *testing.T) {
	filetest.OwnCaches(t)
	trees, c := openCache(t, "/deep")
	root, err := os.OpenRoot(c.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for range 1500 {
		if err := root.Mkdir("d", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := root.OpenRoot("d")
		if err != nil {
			t.Fatal(err)
		}
		_ = root.Close()
		root = next
	}
	_ = root.Close()
	if uses := trees.Caches(); len(uses) != 1 || uses[0].Bytes <= cacheBytes {
		t.Errorf("it counts as %+v", uses)
	}
	_ = c.Close()
	if err := trees.ClearCache(); err != nil || filetest.Exists(c.Dir()) {
		t.Errorf("it cannot be cleared: %v", err)
	}
}
