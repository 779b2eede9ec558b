package policy

import (
	"path/filepath"
	"strings"
)

// maxIncludes bounds how many files of settings are read because others include them.
const maxIncludes = 100

// A GitTree is a repository as it is used in one work tree.
type GitTree struct {
	Dirs []string // where its settings lie, its own directory first
	Tree string   // the work tree, "" for a bare repository
}

// A GitName is an absolute path that settings name.
type GitName struct {
	Path  string
	Hooks bool // a directory of programs
}

// Named lists what the settings of a repository, and those that they include, name that git
// runs or takes for settings: hooks in every place where git looks for them. read returns the content of a file, "" for none.
func (g GitTree) Named(read func(path string) string) (names []GitName) {
	var files []string
	for _, dir := range g.Dirs {
		files = append(files, filepath.Join(dir, "config"), filepath.Join(dir, "config.worktree"))
	}
	for i := 0; i < len(files) && i < maxIncludes; i++ {
		for _, s := range parseGitConfig(read(files[i])) {
			switch {
			case s.section == "core" && s.key == "hookspath":
				for _, path := range g.paths(s.value, g.Tree, g.Dirs[0]) { // the latter when somebody pushes
					names = append(names, GitName{strings.TrimSuffix(path, "/_"), true}) // of husky, whose hooks lie beside it
				}
			case strings.HasPrefix(s.section, "include") && s.key == "path":
				for _, path := range g.paths(s.value, files[i][:strings.LastIndexByte(files[i], '/')]) {
					names, files = append(names, GitName{Path: path}), append(files, path)
				}
			}
		}
	}
	return names
}

// paths lists what a value may name, counted from directories. A home is looked for in
// every directory around the repository: where it is elsewhere, what the value names is too.
// They are not cleaned, for ".." after a link leads to what is above its end.
func (g GitTree) paths(value string, dirs ...string) (paths []string) {
	if strings.HasPrefix(value, "~") {
		_, value, _ = strings.Cut(value, "/")
		dirs = []string{"/"}
		for dir := g.Dirs[0]; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
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
