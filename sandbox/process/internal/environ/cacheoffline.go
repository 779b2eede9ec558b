package environ

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"github.com/perstack-ai/perstack-base/sandbox/internal/lazyregexp"
)

// What the user's own package managers have downloaded serves commands, too, but the
// managers write beside what they only read. So each gets a directory in the cache whose
// parts lead to those of the user's. Where commands decide what the user's is, as in a
// workspace that is the user's home, nothing is: they would have any directory listed.

// maxUnited bounds how many packages of the user's one cache leads to.
const maxUnited = 20000

// uniteYarn has Yarn find the packages of the user's own caches beside those of the
// workspace's, where each is an entry that is never changed. That serves an open network, too.
func uniteYarn(cache, home string, h Host, set map[string]string) {
	root, err := os.OpenRoot(cache)
	if err != nil || home == "" {
		return
	}
	defer root.Close()
	if set["XDG_CACHE_HOME"] != "" { // Yarn 1
		unite(root, h, "xdg/yarn/v6", filepath.Join(home, ".cache/yarn/v6"))
		if os.Getuid() == 0 {
			unite(root, h, "xdg/yarn/v6", "/usr/local/share/.cache/yarn/v6") // where it puts root's
		}
	}
	if set["YARN_GLOBAL_FOLDER"] != "" {
		unite(root, h, "yarn/cache", filepath.Join(home, ".yarn/berry/cache"))
	}
}

// unite makes links at a directory to the entries of another that it does not have, and
// removes those that lead nowhere any more.
func unite(root *os.Root, h Host, at, have string) {
	if !h.safe(have) {
		return
	}
	entries, err := os.ReadDir(have)
	if err != nil || len(entries) > maxUnited || root.MkdirAll(at, 0o700) != nil {
		return
	}
	dir, err := root.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0) // commands could make it a pipe
	if err != nil {
		return
	}
	defer dir.Close()
	own, _ := dir.ReadDir(2 * maxUnited)
	had := map[string]bool{}
	for _, entry := range own {
		had[entry.Name()] = true
		if entry.Type() != fs.ModeSymlink {
			continue
		}
		link := filepath.Join(at, entry.Name())
		if target, err := root.Readlink(link); err == nil && filepath.Dir(target) == have && !Exists(target) {
			_ = root.Remove(link)
		}
	}
	for _, entry := range entries {
		if name := entry.Name(); !had[name] && name[0] != '.' {
			_ = root.Symlink(filepath.Join(have, name), filepath.Join(at, name))
		}
	}
}

// maxStoreIndex bounds the index of a store that is copied.
const maxStoreIndex = 256 << 20

// storeVersion is a part of a store, or a cache, of one version of pnpm.
var storeVersion = lazyregexp.New(`^v\d+$`)

// offlinePNPM has pnpm find the packages of the user's own store, and what it knows of them.
func offlinePNPM(cache, home string, env []string, h Host, set map[string]string) {
	store, known := filepath.Join(home, ".local", "share", "pnpm", "store"), filepath.Join(home, ".cache", "pnpm")
	if home == "" || !h.safe(store) || WritableValue(env, "npm_config_store_dir", h.Writable) || WritableValue(env, "pnpm_config_store_dir", h.Writable) {
		return
	}
	root, err := os.OpenRoot(cache)
	if err != nil {
		return
	}
	defer root.Close()
	copyOver := func(to, from string) { _ = copyNewer(root, to, from, h.Reach) }
	if !twin(root, "pnpm-offline/store", store, func(version string) bool {
		const index = "index.db" // which SQLite opens to write
		at, from := filepath.Join("pnpm-offline/store", version), filepath.Join(store, version)
		copyOver(filepath.Join(at, index), filepath.Join(from, index))
		return twin(root, at, from, nil)
	}) {
		return
	}
	if h.safe(known) {
		twin(root, "pnpm-offline/cache", known, func(version string) bool {
			return twin(root, filepath.Join("pnpm-offline/cache", version), filepath.Join(known, version), nil)
		})
	}
	const verified = "lockfile-verified.jsonl" // what it has asked the registry about
	copyOver(filepath.Join("pnpm-offline/cache", verified), filepath.Join(known, verified))
	for _, name := range []string{"npm_config_store_dir", "pnpm_config_store_dir"} {
		set[name] = filepath.Join(cache, "pnpm-offline", "store")
	}
	set["pnpm_config_cache_dir"] = filepath.Join(cache, "pnpm-offline", "cache")
}

// twin makes a directory at in root whose entries lead to the directories in have, and
// reports whether there are any. What version makes of a store's versions goes before.
func twin(root *os.Root, at, have string, version func(name string) bool) (any bool) {
	entries, err := os.ReadDir(have)
	if err != nil || root.MkdirAll(at, 0o700) != nil {
		return false
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case !entry.IsDir() || name == "projects" || name == "tmp": // which pnpm writes
		case version != nil && storeVersion.MatchString(name):
			any = version(name) || any
		default:
			any = linkOnce(root, filepath.Join(at, name), filepath.Join(have, name)) == nil || any
		}
	}
	return any
}

// linkOnce makes a symbolic link, in the place of whatever else is there.
func linkOnce(root *os.Root, link, target string) error {
	if now, err := root.Readlink(link); err == nil && now == target {
		return nil
	}
	if err := clearName(root, link); err != nil {
		return err
	}
	return root.Symlink(target, link)
}

// clearName makes a name free. A directory that holds something is moved aside: to empty it
// would take as long as a command that runs meanwhile likes, which can go on filling it.
func clearName(root *os.Root, name string) error {
	err := root.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if info, statErr := root.Lstat(name); statErr != nil || !info.IsDir() {
		return err
	}
	return root.Rename(name, filepath.Join(filepath.Dir(name), disk.TempPrefix+rand.Text()+disk.TempSuffix))
}

// copyNewer copies a file of the user's where the copy is not of the same size and time.
func copyNewer(root *os.Root, to, from string, reach func(path string) (*os.File, error)) error {
	if reach == nil {
		return fs.ErrNotExist
	}
	in, err := reach(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || info.Size() > maxStoreIndex {
		return fs.ErrNotExist
	}
	if has, err := root.Lstat(to); err == nil && has.ModTime().Equal(info.ModTime()) && has.Mode().IsRegular() {
		return nil
	}
	if err := root.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := clearName(root, to); err != nil {
		return err
	}
	out, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, io.LimitReader(in, maxStoreIndex)); err != nil {
		out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return root.Chtimes(to, info.ModTime(), info.ModTime())
}
