package scratch

import (
	"errors"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A Cache is a directory of one workspace in which the tools that commands run keep
// what they can make or fetch again: compiled packages, downloads. It outlives
// sessions and servers; all sessions of the workspace share it, and commands of no
// other workspace can reach it. A poisoned one can only hurt commands that could
// write the workspace anyway.
//
// What lies in it belongs to commands, so it is opened through os.Root only. The
// directory itself, and what tells its use, lie in one that commands cannot write.
type Cache struct {
	dir  string
	lock *os.File // shared while a server uses the cache
}

// The bounds of all caches of a user together; see Limits for those of a command.
const (
	cacheBytes = 10 << 30            // a few big builds; a disk is some hundred times that
	cacheAge   = 30 * 24 * time.Hour // nobody has used the workspace for that long
	cacheSweep = 24 * time.Hour      // between two looks at all caches, which read every directory
)

// ErrCacheInUse: the cache cannot be cleared while a server uses it.
var ErrCacheInUse = errors.New("the cache is in use by a running server")

const (
	cacheName     = "cache"
	cacheLock     = "cache.lock"      // its age is that of the last use
	cacheOwner    = "cache.workspace" // holds the path of the workspace
	cacheOversize = "cache.oversize"  // there: to be cleared before the next use
	cacheIdentity = "cache.identity"  // tells the workspace from another directory that was at its path
	cacheSwept    = "caches.swept"    // beside all workspaces: its age is that of the last look
)

// OpenCache makes the cache of a workspace, or opens the one that is there, for use
// until Close.
func OpenCache(trees *Workdirs) (*Cache, error) {
	top, err := trees.open()
	if err != nil {
		return nil, err
	}
	lock, err := top.OpenFile(cacheLock, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := beginCache(top, lock, trees.writable[0]); err != nil {
		lock.Close()
		return nil, err
	}
	return &Cache{dir: filepath.Join(top.Name(), cacheName), lock: lock}, nil
}

// beginCache clears a cache that has become too large, or was another workspace's, and
// marks it as used.
func beginCache(top *os.Root, lock *os.File, workspace string) error {
	identity := disk.BornAs(workspace)
	was, err := top.ReadFile(cacheIdentity)
	others := err == nil && string(was) != identity
	if info, err := top.Lstat(cacheName); err == nil && !info.IsDir() {
		others = true // nothing of ours
	}
	_, err = top.Lstat(cacheOversize)
	switch {
	case err != nil && !others:
	case disk.LockFile(lock, true):
		if err := disk.RemoveAll(top, cacheName); err != nil && others { // it would serve another workspace
			return err
		}
		_ = top.Remove(cacheOversize)
	case others: // whose server is running
		return ErrCacheInUse
	}
	if err := top.WriteFile(cacheIdentity, []byte(identity), 0o600); err != nil {
		return err
	}
	disk.LockFile(lock, false) // where it fails, files cannot be locked here: then nothing is swept either
	now := time.Now()
	_ = top.Chtimes(cacheLock, now, now)
	return errors.Join(ignoring(fs.ErrExist, top.Mkdir(cacheName, 0o700)),
		top.WriteFile(cacheOwner, []byte(workspace), 0o600))
}

// Dir is where the cache lies.
func (c *Cache) Dir() string { return c.dir }

// Close ends the use of the cache.
func (c *Cache) Close() error { return c.lock.Close() }
