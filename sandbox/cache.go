package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// beginCache clears a cache that has become too large, and marks it as used.
func beginCache(top *os.Root, lock *os.File, workspace string) error {
	if _, err := top.Lstat(cacheOversize); err == nil && lockFile(lock, true) {
		_ = removeAll(top, cacheName)
		_ = top.Remove(cacheOversize)
	}
	lockFile(lock, false) // where it fails, files cannot be locked here: then nothing is swept either
	now := time.Now()
	_ = top.Chtimes(cacheLock, now, now)
	return errors.Join(ignoring(fs.ErrExist, top.Mkdir(cacheName, 0o700)),
		top.WriteFile(cacheOwner, []byte(workspace), 0o600))
}

// Dir is where the cache lies.
func (c *Cache) Dir() string { return c.dir }

// Close ends the use of the cache.
func (c *Cache) Close() error { return c.lock.Close() }

// cacheVars are the variables that lead tools into the cache, with the directory of
// each. Those that hold what is downloaded are for a network: while there is
// none, the user's own, which can be read, serves better than an empty one.
var cacheVars = []struct {
	name, dir string
	downloads bool
}{
	{"XDG_CACHE_HOME", "xdg", false},
	{"GOCACHE", "go-build", false},
	{"GOMODCACHE", "go-mod", true},
	{"npm_config_cache", "npm", true},
	{"npm_config_store_dir", "pnpm", false},
	{"YARN_CACHE_FOLDER", "yarn", false},
	{"BUN_INSTALL_CACHE_DIR", "bun", false},
	{"DENO_DIR", "deno", false},
	{"PIP_CACHE_DIR", "pip", false},
	{"UV_CACHE_DIR", "uv", false},
	{"CCACHE_DIR", "ccache", false},
	{"SCCACHE_DIR", "sccache", false},
	{"GRADLE_USER_HOME", "gradle", false},
	{"COMPOSER_CACHE_DIR", "composer", false},
	{"NUGET_PACKAGES", "nuget", false},
}

// env returns env with the variables that lead tools into the cache. One of the
// host's stays where commands may write there.
func (c *Cache) env(env []string, cfg Config) []string {
	set := map[string]string{}
	for _, v := range cacheVars {
		if v.downloads && cfg.Network.Closed() || writableValue(env, v.name, cfg) {
			continue
		}
		set[v.name] = filepath.Join(c.dir, v.dir)
	}
	home, _ := getenv(env, "HOME")
	if cfg.Network.Closed() {
		c.offlineNPM(home, env, set)
	} else if _, ours := set["GOMODCACHE"]; ours {
		goProxy(home, env, set)
	}
	return mergeEnv(env, set)
}

func writableValue(env []string, name string, cfg Config) bool {
	value, ok := getenv(env, name)
	return ok && slices.ContainsFunc(append([]string{cfg.Dir}, cfg.AllowWrite...), func(top string) bool {
		return strings.HasPrefix(withSeparator(filepath.Clean(value)), withSeparator(top))
	})
}

// goProxy makes the modules that the host has already the first place that the go
// command looks in: its own module cache may not be written.
func goProxy(home string, env []string, set map[string]string) {
	have, ok := getenv(env, "GOMODCACHE")
	if !ok {
		have = filepath.Join(home, "go", "pkg", "mod")
	}
	downloads := filepath.Join(have, "cache", "download")
	if info, err := os.Stat(downloads); err != nil || !info.IsDir() {
		return
	}
	others, ok := getenv(env, "GOPROXY")
	if !ok || others == "" {
		others = "https://proxy.golang.org,direct"
	}
	set["GOPROXY"] = "file://" + filepath.ToSlash(downloads) + "," + others
}

// offlineNPM makes a cache for npm whose contents are those of the host's: npm
// writes temporary files beside them even when it only reads.
func (c *Cache) offlineNPM(home string, env []string, set map[string]string) {
	have, ok := getenv(env, "npm_config_cache")
	if !ok {
		have = filepath.Join(home, ".npm")
	}
	const at = "npm-offline"
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return
	}
	defer root.Close()
	if root.MkdirAll(filepath.Join(at, "_cacache"), 0o700) != nil {
		return
	}
	for _, part := range []string{"content-v2", "index-v5"} {
		target, link := filepath.Join(have, "_cacache", part), filepath.Join(at, "_cacache", part)
		if info, err := os.Stat(target); err != nil || !info.IsDir() {
			continue
		}
		if now, err := root.Readlink(link); err == nil && now == target {
			continue
		}
		_ = root.RemoveAll(link)
		_ = root.Symlink(target, link)
	}
	set["npm_config_cache"] = filepath.Join(c.dir, at)
}
