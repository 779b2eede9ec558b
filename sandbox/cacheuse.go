package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	for _, top := range d.places() {
		locks, _ := filepath.Glob(filepath.Join(filepath.Dir(top), "*", cacheLock))
		for _, lock := range locks {
			if use, ok := cacheUse(filepath.Dir(lock)); ok {
				found = append(found, use)
			}
		}
	}
	slices.SortFunc(found, func(a, b CacheUse) int { return b.Used.Compare(a.Used) })
	return found
}

func cacheUse(top string) (use CacheUse, ok bool) {
	info, err := os.Lstat(filepath.Join(top, cacheLock))
	if err != nil || ownedByOther(info) {
		return use, false
	}
	use = CacheUse{Dir: filepath.Join(top, cacheName), Used: info.ModTime()}
	if _, err := os.Lstat(use.Dir); err != nil {
		return use, false
	}
	owner, _ := os.ReadFile(filepath.Join(top, cacheOwner))
	use.Workspace, use.Bytes = string(owner), treeBytes(use.Dir)
	return use, true
}

// treeBytes adds up what the files below dir hold. It follows no link.
func treeBytes(dir string) (sum int64) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(_ string, e fs.DirEntry, err error) error {
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
func (d *Workdirs) CacheDir() string { return filepath.Join(d.places()[0], cacheName) }

// ClearCache empties the cache of the workspace; that of a running server stays and
// is [ErrCacheInUse].
func (d *Workdirs) ClearCache() error {
	for _, top := range d.places() {
		if err := clearCache(top); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func clearCache(top string) error {
	lock, err := os.OpenFile(filepath.Join(top, cacheLock), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer lock.Close()
	if !lockFile(lock, true) {
		return ErrCacheInUse
	}
	dir := filepath.Join(top, cacheName)
	removeWritable(dir)
	if _, err := os.Lstat(dir); err == nil {
		return &fs.PathError{Op: "clear", Path: dir, Err: errors.New("not everything could be removed")}
	}
	return nil
}

// SweepCaches clears caches that are old, and the oldest of those that together are
// too large, but none in use: one that is alone too large is cleared before its next
// use. It looks once a day.
func (d *Workdirs) SweepCaches() {
	for _, top := range d.places() {
		base := filepath.Dir(top)
		stamp := filepath.Join(base, cacheSwept)
		if info, err := os.Lstat(stamp); err == nil && time.Since(info.ModTime()) < cacheSweep {
			continue
		}
		if info, err := os.Lstat(base); err != nil || ownedByOther(info) {
			continue
		}
		_ = os.WriteFile(stamp, nil, 0o600)
		now := time.Now()
		_ = os.Chtimes(stamp, now, now)
		sweepCaches(d.Caches(), cacheBytes, now.Add(-cacheAge))
	}
}

// sweepCaches takes caches, the last used first, and keeps to limit bytes those that
// were used since the given time.
func sweepCaches(caches []CacheUse, limit int64, since time.Time) {
	var sum int64
	for _, c := range caches {
		sum += c.Bytes
		if sum <= limit && c.Used.After(since) {
			continue
		}
		top := filepath.Dir(c.Dir)
		if err := clearCache(top); err == nil {
			sum -= c.Bytes
		} else if c.Bytes > limit {
			_ = os.WriteFile(filepath.Join(top, cacheOversize), nil, 0o600)
		}
	}
}
