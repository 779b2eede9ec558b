package environ

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
)

// CacheVars are the variables that lead tools into the cache, with the directory of
// each. Those that hold what is downloaded are for a network: while there is
// none, the user's own, which can be read, serves better than an empty one.
var CacheVars = []struct {
	Name, Dir string
	downloads bool
}{
	{"XDG_CACHE_HOME", "xdg", false},
	{"GOCACHE", "go-build", false},
	{"GOMODCACHE", "go-mod", true},
	{"npm_config_cache", "npm", true},
	{"npm_config_store_dir", "pnpm", false}, // of pnpm until 10
	{"pnpm_config_store_dir", "pnpm", false},
	{"YARN_GLOBAL_FOLDER", "yarn", false}, // of Yarn from 2 on; Yarn 1 keeps its packages below XDG_CACHE_HOME
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

// ForCache returns env with the variables that lead tools into the cache. One of the
// host's stays where commands may write there.
func ForCache(cache string, env []string, h Host) []string {
	set := map[string]string{}
	mendCache(cache)
	for _, v := range CacheVars {
		if v.downloads && h.Network.Closed() || WritableValue(env, v.Name, h.Writable) {
			continue
		}
		set[v.Name] = filepath.Join(cache, v.Dir)
	}
	home, _ := Get(env, "HOME")
	if h.Network.Closed() {
		offlineNPM(cache, home, env, set)
		offlinePNPM(cache, home, env, h, set)
	} else if _, ours := set["GOMODCACHE"]; ours {
		goProxy(home, env, set)
	}
	uniteYarn(cache, home, h, set)
	return Merge(env, set)
}

// mendCache removes what stands in the place of a tool's directory and is none: the tool
// would fail until somebody clears the cache.
func mendCache(cache string) {
	root, err := os.OpenRoot(cache)
	if err != nil {
		return
	}
	defer root.Close()
	for _, v := range CacheVars {
		if info, err := root.Lstat(v.Dir); err == nil && !info.IsDir() {
			_ = root.Remove(v.Dir)
		}
	}
}

// WritableValue reports whether a variable names a place below those where commands may write.
func WritableValue(env []string, name string, writable []string) bool {
	value, ok := Get(env, name)
	return ok && slices.ContainsFunc(writable, func(top string) bool {
		return strings.HasPrefix(disk.WithSeparator(filepath.Clean(value)), disk.WithSeparator(top))
	})
}

// goProxy makes the modules that the host has already the first place that the go
// command looks in: its own module cache may not be written.
func goProxy(home string, env []string, set map[string]string) {
	have, ok := Get(env, "GOMODCACHE")
	if !ok {
		have = filepath.Join(home, "go", "pkg", "mod")
	}
	downloads := filepath.Join(have, "cache", "download")
	if info, err := os.Stat(downloads); err != nil || !info.IsDir() {
		return
	}
	others, ok := Get(env, "GOPROXY")
	if !ok || others == "" {
		others = "https://proxy.golang.org,direct"
	}
	set["GOPROXY"] = "file://" + filepath.ToSlash(downloads) + "," + others
}

// offlineNPM makes a cache for npm whose contents are those of the host's: npm
// writes temporary files beside them even when it only reads.
func offlineNPM(cache, home string, env []string, set map[string]string) {
	have, ok := Get(env, "npm_config_cache")
	if !ok {
		have = filepath.Join(home, ".npm")
	}
	const at = "npm-offline"
	root, err := os.OpenRoot(cache)
	if err != nil {
		return
	}
	defer root.Close()
	if root.MkdirAll(filepath.Join(at, "_cacache"), 0o700) != nil {
		return
	}
	for _, part := range []string{"content-v2", "index-v5"} {
		target := filepath.Join(have, "_cacache", part)
		if info, err := os.Stat(target); err == nil && info.IsDir() {
			_ = linkOnce(root, filepath.Join(at, "_cacache", part), target)
		}
	}
	set["npm_config_cache"] = filepath.Join(cache, at)
}
