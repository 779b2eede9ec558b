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
		for i, name := range names {
			names[i] = path.Join(filepath.ToSlash(f.real), name)
		}
		named, whole := user.Around(filepath.ToSlash(f.real), read)
		for _, tree := range f.gitTrees(st, rel, read) {
			more, all := tree.Named(user, read)
			if whole = whole && all; slices.Contains(f.way(st, tree.Dirs[0]), rel) {
				return true, nil
			}
			for _, n := range more {
				if at := path.Clean(n.Path); at != tree.Tree && at != tree.Dirs[0] { // not all of it
					named = append(named, n)
				}
			}
		}
		for _, n := range named {
			names = append(names, n.Path)
		}
		for _, name := range names {
			if slices.Contains(f.way(st, name), rel) || f.leadsAround(st, name, rel) {
				return true, nil
			}
		}
		return !whole, nil // what is not known could be it
	})
	return inside
}

// leadsAround reports whether an absolute name leads to rel or to what that lies in.
func (f *FS) leadsAround(st *state, name, rel string) bool {
	name, below := f.enter(name)
	if !below {
		return false
	}
	p, err := f.resolve(st, name, true)
	return err == nil && (rel == p.Rel || strings.HasPrefix(rel, p.Rel+"/"))
}

// way lists the links in the workspace by which an absolute name leads where it does.
func (f *FS) way(st *state, name string) (links []string) {
	for range policy.MaxHops {
		rel, below := f.enter(name)
		if !below {
			break
		}
		link, to, rest := f.firstLink(st, rel)
		if link == "" {
			break
		}
		links = append(links, link)
		if to = filepath.ToSlash(to); !filepath.IsAbs(to) {
			to = path.Join(filepath.ToSlash(f.real), path.Dir(link)) + "/" + to
		}
		name = to + rest
	}
	return links
}

// firstLink finds the first link on the way to a name in the workspace, "" for none, and
// where it leads.
func (f *FS) firstLink(st *state, name string) (link, to, rest string) {
	for i := 1; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		p, err := f.resolve(st, name[:i], false)
		if err != nil {
			break
		}
		if p.Type&fs.ModeSymlink != 0 {
			if to, err := st.root.Readlink(p.Rel); err == nil {
				return p.Rel, to, name[i:]
			}
		}
	}
	return "", "", ""
}

// enter is the name below the root by which a path of the machine comes into it.
func (f *FS) enter(name string) (rel string, below bool) {
	return policy.EnterTree(name, filepath.ToSlash(f.real), os.Readlink)
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
