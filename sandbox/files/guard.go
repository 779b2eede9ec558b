package files

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
)

// guarded reports whether rel is in a .git, at any depth, and decides what git
// executes for its user: all but what git itself writes when it commits, merges
// and fetches. HEAD does: without one git takes the directory around for the repository. Case is ignored everywhere, because a disk may ignore it.
func guarded(rel string) bool {
	for parts := strings.Split(rel, "/"); len(parts) > 0; parts = parts[1:] {
		if strings.EqualFold(parts[0], ".git") && (len(parts) == 1 || !gitsOwn(parts[1])) {
			return true
		}
	}
	return false
}

// gitsOwn reports whether an entry of .git holds only data of git's.
func gitsOwn(name string) bool {
	for _, pattern := range []string{"objects", "refs", "logs", "index", "*_HEAD", "MERGE_*", "COMMIT_EDITMSG", "packed-refs"} {
		if ok, _ := path.Match(pattern, strings.TrimSuffix(name, ".lock")); ok {
			return true
		}
	}
	return false
}

// guard fails for a place that FS.Guarded keeps from being changed.
func (f *FS) guard(name string, p Path) error {
	if f.Guarded && (guarded(p.Rel) || f.inRepository(p.Rel) || f.named(p.Rel)) {
		return &sandbox.PathError{Path: name, Err: sandbox.ErrGuarded}
	}
	return nil
}

// gitSettings are what decides in a directory that git takes for a repository,
// whatever it is called; the mounts of commands cover the same.
var gitSettings = []string{"HEAD", "HEAD.lock", "config", "config.worktree", "config.lock", "config.worktree.lock", "commondir", "gitdir", "hooks", "info", "modules", "worktrees",
	"branches", "description", "remotes"}

// inRepository reports whether rel is or lies in such a setting.
func (f *FS) inRepository(rel string) bool {
	parts := strings.Split(rel, "/")
	inside, _ := within(f, func(st *state) (bool, error) {
		for i, part := range parts {
			named := slices.ContainsFunc(gitSettings, func(s string) bool { return strings.EqualFold(s, part) })
			if named && isGitDir(st, path.Join(parts[:i]...)) {
				return true, nil
			}
		}
		return false, nil
	})
	return inside
}

// maxConfig is how much of a repository's settings is looked at.
const maxConfig = 1 << 20

// named reports whether rel is or lies in what repositories around it take from elsewhere in
// the tree: what their settings and the user's own name, and where links among the settings
// and hooks of the workspace's, or of what is around that, lead.
func (f *FS) named(rel string) bool {
	inside, _ := within(f, func(st *state) (bool, error) {
		read := func(name string) string { return f.gitConfig(st, name) }
		names, user := st.gitLinks(), policy.ThisUser()
		add := func(tree policy.GitTree, more []policy.GitName) {
			for _, named := range more {
				name, below := policy.EnterTree(named.Path, filepath.ToSlash(f.real), filepath.EvalSymlinks)
				at := path.Join(filepath.ToSlash(f.real), name)
				if below && path.Clean(name) != "." && at != tree.Tree && (len(tree.Dirs) == 0 || at != tree.Dirs[0]) {
					names = append(names, name)
				}
			}
		}
		around, whole := user.Around(filepath.ToSlash(f.real), read)
		add(policy.GitTree{}, around)
		for _, tree := range f.gitTrees(st, rel, read) {
			more, all := tree.Named(user, read)
			whole = whole && all
			add(tree, more)
		}
		for _, name := range names {
			if p, err := f.resolve(st, name, true); err == nil && (rel == p.Rel || strings.HasPrefix(rel, p.Rel+"/")) {
				return true, nil
			}
		}
		return !whole, nil // what is not known could be it
	})
	return inside
}

// gitTrees lists the repositories whose trees rel lies in.
func (f *FS) gitTrees(st *state, rel string, read func(name string) string) (trees []policy.GitTree) {
	parts := strings.Split(rel, "/")
	for i := range parts {
		dir := path.Join(parts[:i]...)
		tree := path.Join(filepath.ToSlash(f.real), dir)
		info, err := st.root.Lstat(path.Join(dir, ".git"))
		if err != nil {
			if isGitDir(st, cmp.Or(dir, ".")) {
				trees = append(trees, policy.GitTree{Dirs: []string{tree}})
			}
		} else if found, ok := policy.TreeOf(tree, info, read); ok {
			trees = append(trees, found)
		}
	}
	return trees
}

// gitConfig reads settings of git's, "" for none. Those of a linked worktree lie elsewhere,
// as may what links lead to.
func (f *FS) gitConfig(st *state, name string) string {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return ""
	}
	var file *os.File
	if rel, below := strings.CutPrefix(filepath.ToSlash(real), filepath.ToSlash(f.real)+"/"); below {
		file, err = disk.OpenRegular(st.root, rel, os.O_RDONLY)
	} else if info, missing := os.Stat(real); missing == nil && info.Mode().IsRegular() { // a device may do something when it is opened
		file, err = os.OpenFile(real, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	} else {
		return ""
	}
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	config, _ := io.ReadAll(io.LimitReader(file, maxConfig))
	return string(config)
}

// gitLinks lists the links among the settings and hooks of the workspace's repository.
func (st *state) gitLinks() (links []string) {
	for _, setting := range gitSettings {
		name := path.Join(".git", setting)
		info, err := st.root.Lstat(name)
		if err != nil {
			continue
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			links = append(links, name)
		}
	}
	hooks, err := st.root.OpenFile(".git/hooks", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return links
	}
	defer hooks.Close()
	entries, _ := hooks.ReadDir(-1)
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 {
			links = append(links, path.Join(".git/hooks", entry.Name()))
		}
	}
	return links
}

// isGitDir reports whether git takes a directory for a repository, or would if it had a HEAD.
func isGitDir(st *state, dir string) bool {
	for _, name := range []string{"objects", "refs"} {
		if _, err := st.root.Lstat(path.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}
