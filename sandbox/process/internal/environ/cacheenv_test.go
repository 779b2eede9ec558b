package environ

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// TestCacheVariables: tools are led into the cache, but for where the host's own
// place can be written.
func TestCacheVariables(t *testing.T) {
	home := t.TempDir()
	filetest.Put(t, filepath.Join(home, "go/pkg/mod/cache/download/x"), "")
	filetest.Put(t, filepath.Join(home, ".npm/_cacache/content-v2/x"), "")
	cache := t.TempDir()
	host := []string{"HOME=" + home, "GOCACHE=/own/cache", "PIP_CACHE_DIR=/elsewhere"}
	value := func(cfg Host, name string) string {
		v, _ := Get(ForCache(cache, host, cfg), name)
		return v
	}
	closed := Host{Writable: []string{"/w", "/own"}}
	open := closed
	open.Network = network.Everything
	for _, want := range []struct {
		cfg         Host
		name, value string
	}{
		{closed, "GOCACHE", "/own/cache"},
		{closed, "PIP_CACHE_DIR", filepath.Join(cache, "pip")},
		{closed, "XDG_CACHE_HOME", filepath.Join(cache, "xdg")},
		{closed, "GOMODCACHE", ""},
		{closed, "npm_config_cache", filepath.Join(cache, "npm-offline")},
		{open, "npm_config_cache", filepath.Join(cache, "npm")},
		{open, "GOMODCACHE", filepath.Join(cache, "go-mod")},
		{open, "GOPROXY", "file://" + home + "/go/pkg/mod/cache/download,https://proxy.golang.org,direct"},
	} {
		if got := value(want.cfg, want.name); got != want.value {
			t.Errorf("network %v: %s is %q, not %q", want.cfg.Network, want.name, got, want.value)
		}
	}
	link := filepath.Join(cache, "npm-offline/_cacache/content-v2")
	if got, err := os.Readlink(link); err != nil || got != filepath.Join(home, ".npm/_cacache/content-v2") {
		t.Errorf("%s leads to %q: %v", link, got, err)
	}
	// A command that puts a link in the way makes the server write nowhere else.
	away := t.TempDir()
	if err := errors.Join(os.RemoveAll(filepath.Join(cache, "npm-offline")), os.Symlink(away, filepath.Join(cache, "npm-offline"))); err != nil {
		t.Fatal(err)
	}
	_ = ForCache(cache, host, closed)
	if entries, err := os.ReadDir(away); err != nil || len(entries) != 0 {
		t.Errorf("the server followed a link out of the cache: %v %v", entries, err)
	}
}
