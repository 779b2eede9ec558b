package environ

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// TestOfflineCaches: what the user's own Yarn and pnpm have downloaded is found in the
// cache, where what they write beside it has room of its own.
func TestOfflineCaches(t *testing.T) {
	home, cache := t.TempDir(), t.TempDir()
	for _, path := range []string{
		".cache/yarn/v6/npm-a-1.0.0/node_modules/a/index.js", ".cache/yarn/v6/.tmp/x", ".yarn/berry/cache/a-npm-1.0.0.zip",
		".local/share/pnpm/store/v10/files/00/x", ".local/share/pnpm/store/v10/projects/x", ".local/share/pnpm/store/v11/files/00/x",
		".local/share/pnpm/store/v11/index.db", ".cache/pnpm/v12/metadata/x", ".cache/pnpm/lockfile-verified.jsonl",
	} {
		filetest.Put(t, filepath.Join(home, path), path)
	}
	host := []string{"HOME=" + home}
	filetest.Put(t, filepath.Join(cache, "xdg/yarn/v6/npm-own-1.0.0/x"), "own")
	env := ForCache(cache, host, Host{Writable: []string{"/w"}, Reach: policy.Policy{Write: []string{"/w"}}.Reach, Safe: policy.Policy{Write: []string{"/w"}}.Safe})
	for name, want := range map[string]string{
		"npm_config_store_dir": "pnpm-offline/store", "pnpm_config_store_dir": "pnpm-offline/store", "pnpm_config_cache_dir": "pnpm-offline/cache",
		"YARN_GLOBAL_FOLDER": "yarn", "XDG_CACHE_HOME": "xdg",
	} {
		if got, _ := Get(env, name); got != filepath.Join(cache, want) {
			t.Errorf("%s is %q", name, got)
		}
	}
	holds := func(at, want string) {
		t.Helper()
		if text, err := os.ReadFile(filepath.Join(cache, at)); string(text) != want {
			t.Errorf("%s holds %q, not %q: %v", at, text, want, err)
		}
	}
	holds("xdg/yarn/v6/npm-a-1.0.0/node_modules/a/index.js", ".cache/yarn/v6/npm-a-1.0.0/node_modules/a/index.js")
	holds("xdg/yarn/v6/npm-own-1.0.0/x", "own")
	holds("yarn/cache/a-npm-1.0.0.zip", ".yarn/berry/cache/a-npm-1.0.0.zip")
	holds("pnpm-offline/store/v10/files/00/x", ".local/share/pnpm/store/v10/files/00/x")
	holds("pnpm-offline/store/v11/index.db", ".local/share/pnpm/store/v11/index.db")
	holds("pnpm-offline/cache/v12/metadata/x", ".cache/pnpm/v12/metadata/x")
	holds("pnpm-offline/cache/lockfile-verified.jsonl", ".cache/pnpm/lockfile-verified.jsonl")
	for _, path := range []string{"xdg/yarn/v6/.tmp", "pnpm-offline/store/v10/projects"} { // which are written
		if _, err := os.Lstat(filepath.Join(cache, path)); err == nil {
			t.Errorf("%s leads to the user's", path)
		}
	}

	// The user's change; what leads nowhere goes, and the copies follow.
	filetest.Put(t, filepath.Join(home, ".local/share/pnpm/store/v11/index.db"), "newer")
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(filepath.Join(home, ".local/share/pnpm/store/v11/index.db"), later, later); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(home, ".cache/yarn/v6/npm-a-1.0.0")); err != nil {
		t.Fatal(err)
	}
	ForCache(cache, host, Host{Writable: []string{"/w"}, Reach: policy.Policy{Write: []string{"/w"}}.Reach, Safe: policy.Policy{Write: []string{"/w"}}.Safe})
	holds("pnpm-offline/store/v11/index.db", "newer")
	if _, err := os.Lstat(filepath.Join(cache, "xdg/yarn/v6/npm-a-1.0.0")); err == nil {
		t.Error("a link that leads nowhere stays")
	}
	// With a network pnpm fills a store of its own.
	env = ForCache(cache, host, Host{Writable: []string{"/w"}, Reach: policy.Policy{Write: []string{"/w"}}.Reach, Safe: policy.Policy{Write: []string{"/w"}}.Safe, Network: network.Everything})
	if got, _ := Get(env, "pnpm_config_store_dir"); got != filepath.Join(cache, "pnpm") {
		t.Errorf("with a network the store is %q", got)
	}
}

// TestOfflineCopiesStayOut: nothing is copied from where commands could have put it, however
// the user's store leads there, or to where a link of theirs leads.
func TestOfflineCopiesStayOut(t *testing.T) {
	home, cache, away, work := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	pnpm := filepath.Join(home, ".local/share/pnpm")
	copied := filepath.Join(cache, "pnpm-offline/store/v11/index.db")
	filetest.Put(t, filepath.Join(home, ".ssh/id"), "secret")
	filetest.Put(t, filepath.Join(work, "store/v11/files/00/x"), "")
	for link, target := range map[string]string{pnpm: work, filepath.Join(work, "store/v11/index.db"): filepath.Join(home, ".ssh/id")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(target, link)); err != nil {
			t.Skip(err)
		}
	}
	p := policy.DefaultPolicy(policy.Inputs{Workspace: work, Home: home}).Pin()
	defer p.Close()
	h, host := Host{Writable: []string{work}, Reach: p.Reach, Safe: p.Safe}, []string{"HOME=" + home}
	ForCache(cache, host, h)
	if text, err := os.ReadFile(copied); err == nil {
		t.Errorf("through a link of commands %q is copied", text)
	}
	if err := os.Remove(pnpm); err != nil {
		t.Fatal(err)
	}
	filetest.Put(t, filepath.Join(pnpm, "store/v11/files/00/x"), "")
	filetest.Put(t, filepath.Join(pnpm, "store/v11/index.db"), "index")
	if ForCache(cache, host, h); !Exists(copied) {
		t.Error("what no command has put there is not copied")
	}
	if err := os.RemoveAll(filepath.Join(cache, "pnpm-offline")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(away, filepath.Join(cache, "pnpm-offline")); err != nil {
		t.Fatal(err)
	}
	ForCache(cache, host, h)
	if entries, err := os.ReadDir(away); err != nil || len(entries) > 0 {
		t.Errorf("the server followed a link out of the cache: %v %v", entries, err)
	}
}

// TestOfflineCachesListNothing: where commands decide what the user's caches are, as where
// the workspace is the user's home, they learn nothing of directories that they may not read.
func TestOfflineCachesListNothing(t *testing.T) {
	home, cache, away := t.TempDir(), t.TempDir(), t.TempDir()
	filetest.Put(t, filepath.Join(away, "names/of/others"), "")
	filetest.Put(t, filepath.Join(away, "v10/files/x"), "")
	for _, link := range []string{".cache/yarn/v6", ".yarn/berry/cache", ".local/share/pnpm/store", ".cache/pnpm"} {
		link = filepath.Join(home, link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(away, link)); err != nil {
			t.Skip(err)
		}
	}
	told := func(workspace string) (names []string) {
		p := policy.DefaultPolicy(policy.Inputs{Workspace: workspace, Home: home}).Pin()
		defer p.Close()
		ForCache(cache, []string{"HOME=" + home}, Host{Writable: []string{workspace}, Reach: p.Reach, Safe: p.Safe})
		_ = filepath.WalkDir(cache, func(path string, entry fs.DirEntry, _ error) error {
			if name := entry.Name(); name == "names" || name == "files" {
				names = append(names, path)
			}
			return nil
		})
		return names
	}
	if names := told(home); len(names) > 0 {
		t.Errorf("commands are told of %q", names)
	}
	if len(told(t.TempDir())) == 0 {
		t.Error("where the links are the user's own nothing is found: the test proves nothing")
	}
}
