package sandbox

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
)

// A repository is what git needs of the workspace's own repository where that
// lies outside: the workspace is a linked worktree, a submodule, or below the top.
type repository struct {
	top         string // of the tree of files
	read, write []string
}

// findRepository looks for it by reading what git left there, never by running
// git. Commands can write the .git of the workspace: what it names counts only if
// that names the workspace in return, which nobody could do from inside.
func findRepository(workspace string, policy confine.Policy) (r repository, found bool) {
	for top := workspace; ; top = filepath.Dir(top) {
		git := filepath.Join(top, ".git")
		info, err := os.Lstat(git)
		switch {
		case err == nil && info.IsDir() && top == workspace:
			return r, false // nothing lies outside
		case err == nil && info.IsDir():
			return repository{top: top, read: append(besideGit(top), git)}, ownedByUs(info)
		case err == nil && info.Mode().IsRegular():
			return linkedRepository(top, workspace, policy)
		case top == filepath.Dir(top):
			return r, false
		}
	}
}

// besideGit are the files at the top of a tree that say what git leaves out.
func besideGit(top string) []string {
	return []string{filepath.Join(top, ".gitignore"), filepath.Join(top, ".gitattributes")}
}

// linkedRepository follows a .git that is a file.
func linkedRepository(top, workspace string, policy confine.Policy) (r repository, found bool) {
	text, ok := readBelow(top, ".git")
	dir, isLink := strings.CutPrefix(text, "gitdir: ")
	if !ok || !isLink {
		return r, false
	}
	gitDir := from(top, dir)
	r.top = top
	if top != workspace {
		r.read = besideGit(top)
	}
	if back, ok := readLine(policy, filepath.Join(gitDir, "gitdir")); ok && from(gitDir, back) == filepath.Join(top, ".git") {
		name, ok := readLine(policy, filepath.Join(gitDir, "commondir"))
		common := from(gitDir, name)
		if !ok || filepath.Dir(gitDir) != filepath.Join(common, "worktrees") {
			return r, false
		}
		r.read = append(r.read, common)
		r.write = []string{gitDir}
		for _, part := range []string{"objects", "refs", "logs"} {
			r.write = append(r.write, filepath.Join(common, part))
		}
		return r, true
	}
	if config, ok := readHost(policy, filepath.Join(gitDir, "config")); ok && worktreeOf(string(config), gitDir) == top {
		r.read = append(r.read, gitDir)
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
	file, err := openRegular(root, name, os.O_RDONLY|syscall.O_NONBLOCK)
	if err != nil {
		return "", false
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, 1<<16))
	return firstLine(data), err == nil
}

func readLine(policy confine.Policy, path string) (string, bool) {
	data, ok := readHost(policy, path)
	return firstLine(data), ok
}

func firstLine(data []byte) string {
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSuffix(line, "\r")
}

// env tells git that the workspace may be owned by somebody else, and that the
// repository lies above it, where in namespaces another file system begins.
func (r repository) env(env []string, workspace string) []string {
	dirs := []string{workspace}
	if r.top != "" && r.top != workspace {
		dirs = append(dirs, r.top)
		env = addMissing(env, []string{"GIT_DISCOVERY_ACROSS_FILESYSTEM=1"})
	}
	if _, set := getenv(env, "GIT_CONFIG_COUNT"); set {
		return env // the host's own settings stay as they are
	}
	for i, dir := range dirs {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=safe.directory", i), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, dir))
	}
	return append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(dirs)))
}
