package policy

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// A GitUser is for whom git runs.
type GitUser struct {
	Home     string
	Settings []string // the files that git reads in every repository, if they exist
}

// ThisUser is who runs this process.
func ThisUser() GitUser {
	home, _ := os.UserHomeDir()
	u := GitUser{Home: filepath.ToSlash(home)}
	for _, file := range []string{
		os.Getenv("GIT_CONFIG_SYSTEM"), "/etc/gitconfig", "/usr/local/etc/gitconfig",
		os.Getenv("GIT_CONFIG_GLOBAL"), join(os.Getenv("XDG_CONFIG_HOME"), "git/config"),
		join(home, ".config/git/config"), join(home, ".gitconfig"),
	} {
		if filepath.IsAbs(file) {
			u.Settings = append(u.Settings, path.Clean(filepath.ToSlash(file)))
		}
	}
	return u
}

// join is filepath.Join, "" where there is no directory.
func join(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// gitTrusts are the names in a git directory that decide what git runs.
var gitTrusts = []string{"config", "config.worktree", "commondir", "hooks", "info", "modules", "worktrees", "remotes", "branches"}

// Around lists what decides what git runs for its user and lies outside of a workspace, or
// is led to from there: links and settings may lead into it. That is what the user's own
// settings are and name, and the repositories around the workspace, which commands cannot
// have made. There is more where it is not whole.
func (u GitUser) Around(workspace string, read func(path string) string) (names []GitName, whole bool) {
	for _, file := range u.Settings {
		names = append(names, GitName{Path: file, Make: true})
	}
	more, whole := GitTree{Tree: workspace}.Named(u, read)
	names = append(names, more...)
	for _, tree := range treesAround(workspace, read) {
		more, all := tree.Named(GitUser{Home: u.Home}, read)
		names, whole = append(names, more...), whole && all
		for _, dir := range tree.Dirs {
			for _, name := range gitTrusts {
				names = append(names, GitName{Path: path.Join(dir, name), Hooks: name == "hooks"})
			}
		}
	}
	for _, name := range names {
		if name.Hooks {
			names = append(names, linksIn(name.Path)...)
		}
	}
	return names, whole
}

// treesAround lists the repositories around a directory, and its own if that lies elsewhere.
func treesAround(dir string, read func(path string) string) (trees []GitTree) {
	for top := dir; ; top = path.Dir(top) {
		info, err := os.Lstat(path.Join(top, ".git"))
		if err == nil && (top != dir || !info.IsDir()) {
			if tree, ok := TreeOf(top, info, read); ok {
				trees = append(trees, tree)
			}
		}
		if top == path.Dir(top) {
			return trees
		}
	}
}

// linksIn lists the programs in a directory of hooks that are links.
func linksIn(dir string) (links []GitName) {
	file, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	entries, _ := file.ReadDir(maxHooks)
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 {
			links = append(links, GitName{Path: path.Join(dir, entry.Name())})
		}
	}
	return links
}

// maxHooks is how many programs of one directory are looked at.
const maxHooks = 1000
