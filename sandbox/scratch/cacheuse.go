package scratch

import (
	"fmt"
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A CacheUse is the cache of one workspace as [Workdirs.Caches] finds it.
type CacheUse struct {
	Dir       string
	Workspace string
	Bytes     int64
	Used      time.Time // begun to be used for the last time
}

// Caches lists the caches of all workspaces of this user, the last used first. It
// makes nothing.
func (d *Workdirs) Caches() []CacheUse {
	var found []CacheUse
	d.eachBase(func(base *os.Root) { found = append(found, cachesIn(base)...) })
	slices.SortFunc(found, func(a, b CacheUse) int { return b.Used.Compare(a.Used) })
	return found
}

// eachBase opens the directories that hold those of all workspaces, where they are there.
func (d *Workdirs) eachBase(do func(base *os.Root)) {
	for _, place := range d.places() {
		place.names = place.names[:len(place.names)-1]
		if base, err := d.private(place, false); err == nil {
			do(base)
			base.Close()
		}
	}
}

func cachesIn(base *os.Root) (found []CacheUse) {
	entries, _ := fs.ReadDir(base.FS(), ".")
	for _, e := range entries {
		top, err := ownDir(base, e.Name(), false)
		if err != nil {
			continue
		}
		if use, ok := cacheUse(top); ok {
			found = append(found, use)
		}
		top.Close()
	}
	return found
}

func cacheUse(top *os.Root) (use CacheUse, ok bool) {
	lock, err := top.Lstat(cacheLock)
	if err != nil {
		return use, false
	}
	dir, err := ownDir(top, cacheName, false)
	if err != nil {
		return use, false
	}
	defer dir.Close()
	owner, _ := top.ReadFile(cacheOwner)
	return CacheUse{Dir: filepath.Join(top.Name(), cacheName), Workspace: string(owner), Bytes: treeBytes(dir), Used: lock.ModTime()}, true
}

// maxDepth is how deep a tree is looked at that commands have made: the way to each
// directory is walked anew, so a tree of thousands of levels would take for ever. No
// tool needs as many.
const maxDepth = 128

func tooDeep(path string) bool { return strings.Count(path, "/") >= maxDepth }

// treeBytes adds up what the files of a tree hold, which is more than any limit for
// one that is too deep. It follows no link.
func treeBytes(root *os.Root) (sum int64) {
	_ = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if tooDeep(path) {
			sum = 1 << 50 // a petabyte
			return fs.SkipAll
		}
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// CacheDir is where the cache of the workspace lies or would be made.
func (d *Workdirs) CacheDir() string {
	place := d.places()[0]
	return filepath.Join(append(append([]string{place.base}, place.names...), cacheName)...)
}

// ClearCache empties the cache of the workspace; that of a running server stays and
// is [ErrCacheInUse].
func (d *Workdirs) ClearCache() error {
	for _, place := range d.places() {
		top, err := d.private(place, false)
		if err != nil {
			continue // there is none
		}
		err = clearCache(top)
		top.Close()
		if ignoring(fs.ErrNotExist, err) != nil {
			return err
		}
	}
	return nil
}

func clearCache(top *os.Root) error {
	lock, err := top.OpenFile(cacheLock, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer lock.Close()
	if !disk.LockFile(lock, true) {
		return ErrCacheInUse
	}
	if err := disk.RemoveAll(top, cacheName); err != nil {
		return &fs.PathError{Op: "clear", Path: filepath.Join(top.Name(), cacheName), Err: fmt.Errorf("not everything could be removed: %w", sandbox.Reason(err))}
	}
	return nil
}

// SweepCaches clears caches that are old, and the oldest of those that together are
// too large, but none in use: one that is alone too large is cleared before its next
// use. It looks once a day.
func (d *Workdirs) SweepCaches() {
	d.eachBase(func(base *os.Root) {
		now := time.Now()
		if info, err := base.Lstat(cacheSwept); err == nil && now.Sub(info.ModTime()) < cacheSweep {
			return
		}
		_ = base.WriteFile(cacheSwept, nil, 0o600)
		_ = base.Chtimes(cacheSwept, now, now)
		caches := cachesIn(base)
		slices.SortFunc(caches, func(a, b CacheUse) int { return b.Used.Compare(a.Used) })
		sweepCaches(base, caches, cacheBytes, now.Add(-cacheAge))
	})
}

// sweepCaches takes caches, the last used first, and keeps to limit bytes those that
// were used since the given time.
func sweepCaches(base *os.Root, caches []CacheUse, limit int64, since time.Time) {
	var sum int64
	for _, c := range caches {
		sum += c.Bytes
		if sum <= limit && c.Used.After(since) {
			continue
		}
		top, err := ownDir(base, filepath.Base(filepath.Dir(c.Dir)), false)
		if err != nil {
			continue
		}
		if err := clearCache(top); err == nil {
			sum -= c.Bytes
		} else if c.Bytes > limit {
			_ = top.WriteFile(cacheOversize, nil, 0o600)
		}
		top.Close()
	}
}
