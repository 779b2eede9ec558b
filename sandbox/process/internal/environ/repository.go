package environ

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
)

// A Repository is what git needs of the workspace's own repository where that
// lies outside: the workspace is a linked worktree, a submodule, or below the top.
type Repository struct {
	top    string // of the tree of files
	Common string // the git directory that all worktrees share
	Read   []string
	Write  map[string]policy.Kind
	Reason string // why these may be reached
}

// FindRepository looks for it by reading what git left there, never by running
// git. Commands can write the .git of the workspace: what it names counts only if
// that names the workspace in return, lies in no place where commands of any session
// write, and no link leads on from there: see trusted.
func FindRepository(workspace string, p policy.Policy) (r Repository, found bool) {
	if r, found = lookForRepository(workspace, p); found {
		r, found = r.trusted(p)
	}
	return r, found
}

func lookForRepository(workspace string, p policy.Policy) (r Repository, found bool) {
	for top := workspace; ; top = filepath.Dir(top) {
		git := filepath.Join(top, ".git")
		info, err := os.Lstat(git)
		switch {
		case err == nil && info.IsDir() && top == workspace:
			return r, false // nothing lies outside
		case err == nil && info.IsDir():
			return Repository{top: top, Common: git, Read: append(besideGit(top), git)}, disk.OwnedByUs(info)
		case err == nil && info.Mode().IsRegular():
			return linkedRepository(top, workspace, p)
		case top == filepath.Dir(top):
			return r, false
		}
	}
}

// trusted leaves out what does not exist, and everything when something in it is
// what a command could have put there: a link, or what lies in a private place, in
// which commands of this workspace's sessions write.
func (r Repository) trusted(p policy.Policy) (Repository, bool) {
	kept := Repository{top: r.top, Common: r.Common, Write: map[string]policy.Kind{}, Reason: "the workspace's own repository"}
	for _, path := range append(slices.Collect(maps.Keys(r.Write)), r.Read...) {
		real, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || real != path || Private(path) || p.Allows(path, true) {
			return Repository{}, false
		}
		if kind, write := r.Write[path]; write {
			kept.Write[path] = kind
		} else {
			kept.Read = append(kept.Read, path)
		}
	}
	for path, kind := range kept.Write {
		if link := linkBelow(path); kind == policy.GitData && link != "" {
			kept.Write, kept.Reason = nil, kept.Reason+", read only because of "+link
			break
		}
	}
	return kept, true
}

// maxLinkWalk bounds how many entries of git's are looked at for links.
const maxLinkWalk = 100_000

// linkBelow finds a link below a directory, or another thing that is neither file
// nor directory: git follows one to wherever it leads when it writes. "" for none.
func linkBelow(dir string) (found string) {
	seen := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if seen++; err == nil && seen <= maxLinkWalk && (entry.IsDir() || entry.Type().IsRegular()) {
			return nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // git removes its locks
		}
		found = path
		return fs.SkipAll
	})
	if err != nil {
		return dir
	}
	return found
}

// Private reports whether a path lies in what servers make for their commands:
// a session's directory, a cache, a run workspace.
func Private(path string) bool {
	bases := []string{os.TempDir(), "/tmp", "/var/tmp", os.Getenv("XDG_RUNTIME_DIR")}
	if cache, err := os.UserCacheDir(); err == nil {
		bases = append(bases, cache)
	}
	for _, base := range bases {
		real, err := filepath.EvalSymlinks(base)
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(real, path); err == nil && strings.HasPrefix(rel, "perstack-base") {
			return true
		}
	}
	return false
}

// besideGit are the files at the top of a tree that say what git leaves out.
func besideGit(top string) []string {
	return []string{filepath.Join(top, ".gitignore"), filepath.Join(top, ".gitattributes")}
}

// linkedRepository follows a .git that is a file.
func linkedRepository(top, workspace string, p policy.Policy) (r Repository, found bool) {
	text, ok := readBelow(top, ".git")
	dir, isLink := strings.CutPrefix(text, "gitdir: ")
	if !ok || !isLink {
		return r, false
	}
	gitDir, err := filepath.EvalSymlinks(from(top, dir))
	if err != nil {
		return r, false
	}
	r.top = top
	if top != workspace {
		r.Read = besideGit(top)
	}
	if back, ok := readLine(p, filepath.Join(gitDir, "gitdir")); ok && from(gitDir, back) == filepath.Join(top, ".git") {
		name, ok := readLine(p, filepath.Join(gitDir, "commondir"))
		common, err := filepath.EvalSymlinks(from(gitDir, name))
		if !ok || err != nil || filepath.Dir(gitDir) != filepath.Join(common, "worktrees") {
			return r, false
		}
		r.Read, r.Common = append(r.Read, common), common
		if !Private(common) && !p.Allows(common, true) { // trusted refuses others
			_ = os.MkdirAll(filepath.Join(common, "logs", "refs"), 0o777) // as git does; logs/HEAD is not the worktree's
		}
		r.Write = map[string]policy.Kind{gitDir: policy.GitData, filepath.Join(common, "objects"): policy.GitObjects,
			filepath.Join(common, "refs"): policy.GitData, filepath.Join(common, "logs", "refs"): policy.GitData}
		return r, true
	}
	if config, ok := ReadHost(p, filepath.Join(gitDir, "config")); ok && worktreeOf(string(config), gitDir) == top {
		r.Read, r.Common = append(r.Read, gitDir), gitDir
		return r, true
	}
	return r, false
}

// worktreeOf is core.worktree of a submodule's config.
func worktreeOf(config, gitDir string) string {
	for line := range strings.Lines(config) {
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.TrimSpace(key) == "worktree" {
			return from(gitDir, strings.TrimSpace(value))
		}
	}
	return ""
}

// from is a path as it counts from dir.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// readBelow reads the first line of a small file in a directory that commands can write.
func readBelow(dir, name string) (string, bool) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", false
	}
	defer root.Close()
	file, err := disk.OpenRegular(root, name, os.O_RDONLY|syscall.O_NONBLOCK)
	if err != nil {
		return "", false
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, 1<<16))
	return firstLine(data), err == nil
}

func readLine(p policy.Policy, path string) (string, bool) {
	data, ok := ReadHost(p, path)
	return firstLine(data), ok
}

func firstLine(data []byte) string {
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSuffix(line, "\r")
}

// Env tells git that the workspace may be owned by somebody else, and that the
// repository lies above it, where in namespaces another file system begins.
func (r Repository) Env(env []string, workspace string) []string {
	dirs := []string{workspace}
	if r.top != "" && r.top != workspace {
		dirs = append(dirs, r.top)
		env = AddMissing(env, []string{"GIT_DISCOVERY_ACROSS_FILESYSTEM=1"})
	}
	if _, set := Get(env, "GIT_CONFIG_COUNT"); set {
		return env // the host's own settings stay as they are
	}
	for i, dir := range dirs {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=safe.directory", i), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, dir))
	}
	return append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(dirs)))
}
