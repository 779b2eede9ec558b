package policy

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxIncludes bounds how many files of settings are read because others include them.
const maxIncludes = 100

// A GitTree is a repository as it is used in one work tree. Its paths are absolute, with slashes.
type GitTree struct {
	Dirs []string // where its settings lie, its own directory first
	Tree string   // the work tree, "" for a bare repository
}

// A GitName is an absolute path that git runs programs or takes settings from.
type GitName struct {
	Path  string
	Hooks bool // a directory of programs
	Make  bool // to be made where it is missing: git looks for it in every repository
}

// Named lists what the settings of a user and of a repository, and those that they include,
// name that git runs or takes for settings: hooks in every place where git looks for them.
// read returns the content of a file, "" for none. There are more where it is not whole.
func (g GitTree) Named(u GitUser, read func(path string) string) (names []GitName, whole bool) {
	files, bases, hooks := slices.Clone(u.Settings), []string{g.Tree}, []string{}
	for _, dir := range g.Dirs {
		files = append(files, path.Join(dir, "config"), path.Join(dir, "config.worktree"))
	}
	bases = append(bases, g.Dirs[:min(len(g.Dirs), 1)]...) // when somebody pushes
	for i := 0; i < len(files) && i < maxIncludes; i++ {
		for _, s := range parseGitConfig(read(files[i])) {
			switch {
			case s.section == "core" && s.key == "hookspath", s.section == "init" && s.key == "templatedir":
				hooks = append(hooks, s.value)
			case s.section == "core" && s.key == "worktree" && len(g.Dirs) > 0:
				bases = append(bases, g.paths(u, s.value, g.Dirs[0])...)
			case strings.HasPrefix(s.section, "include") && s.key == "path":
				for _, path := range g.paths(u, s.value, files[i][:strings.LastIndexByte(files[i], '/')]) {
					names, files = append(names, GitName{Path: path}), append(files, path)
				}
			}
		}
	}
	for _, value := range hooks {
		for _, path := range g.paths(u, value, bases...) {
			names = append(names, GitName{Path: strings.TrimSuffix(path, "/_"), Hooks: true}) // of husky, whose hooks lie beside it
		}
	}
	return names, len(files) <= maxIncludes
}

// paths lists what a value may name, counted from directories. A home is looked for in
// every directory around the repository, too: that of another user may be one.
// They are not cleaned, for ".." after a link leads to what is above its end.
func (g GitTree) paths(u GitUser, value string, dirs ...string) (paths []string) {
	value = filepath.ToSlash(strings.TrimPrefix(value, ":(optional)"))
	if strings.HasPrefix(value, "~") {
		_, value, _ = strings.Cut(value, "/")
		dirs = []string{"/", u.Home}
		for dir := append(slices.Clone(g.Dirs), "/")[0]; dir != "/" && dir != "."; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	if filepath.IsAbs(value) {
		return []string{strings.TrimRight(value, "/")}
	}
	for _, dir := range dirs {
		if dir != "" && value != "" {
			paths = append(paths, strings.TrimRight(dir+"/"+value, "/"))
		}
	}
	return paths
}

// TreeOf is the repository of a work tree whose .git is what info says.
func TreeOf(tree string, info fs.FileInfo, read func(path string) string) (g GitTree, ok bool) {
	git := path.Join(tree, ".git")
	if info.Mode().IsRegular() {
		return PointedTree(tree, read(git), read)
	}
	return TreeAt(git, tree, read), true
}

// PointedTree is the repository of a work tree whose .git is a file with a text that names
// its directory.
func PointedTree(tree, text string, read func(path string) string) (g GitTree, ok bool) {
	git, ok := strings.CutPrefix(text, "gitdir:")
	if !ok {
		return g, false
	}
	return TreeAt(slashed(strings.TrimSpace(git), tree), tree, read), true
}

// TreeAt is a repository whose settings may lie in another.
func TreeAt(git, tree string, read func(path string) string) GitTree {
	dirs := []string{git}
	if common := strings.TrimSpace(read(path.Join(git, "commondir"))); common != "" && slashed(common, git) != git {
		dirs = append(dirs, slashed(common, git))
	}
	return GitTree{Dirs: dirs, Tree: tree}
}

// slashed is a path with slashes, counted from dir if it is relative.
func slashed(name, dir string) string {
	if filepath.IsAbs(name) {
		return filepath.ToSlash(name)
	}
	return path.Join(dir, filepath.ToSlash(name))
}

// EnterTree returns the name below top by which a path first comes into it, links outside of
// top followed: the user may have come by one. Where it leads out again it is the last.
func EnterTree(name, top string, readlink func(path string) (string, error)) (rel string, below bool) {
	at, inside, hops := "/", false, 0
	for rest := strings.Split(name, "/"); len(rest) > 0; {
		next := path.Join(at, rest[0]) // what is above a real directory is its parent
		rest = rest[1:]
		if Below(next, []string{top}) {
			if !inside {
				rel = strings.TrimPrefix(strings.Join(append([]string{strings.TrimPrefix(next, top)}, rest...), "/"), "/")
			}
			if inside = true; !slices.Contains(rest, "..") {
				return rel, true
			}
		}
		to, err := readlink(next)
		if err != nil {
			at, inside = next, Below(next, []string{top})
			continue
		}
		if hops++; hops > MaxHops {
			return "", false
		}
		if to = filepath.ToSlash(to); filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return rel, inside
}

// MaxHops is how many links in one name are followed, as the kernel does.
const MaxHops = 40
