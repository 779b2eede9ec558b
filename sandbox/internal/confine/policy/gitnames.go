package policy

import (
	"path"
	"path/filepath"
	"strings"
)

// maxIncludes bounds how many files of settings are read because others include them.
const maxIncludes = 100

// NamedByGit lists what the settings of the repository at top, and those that they include,
// name in its tree that git runs or takes for settings: slash-separated, below top. read
// returns the content of a file below top, "" for none.
func NamedByGit(read func(name string) string, top string) (names []string) {
	files := []string{".git/config", ".git/config.worktree"}
	for i := 0; i < len(files) && i < maxIncludes; i++ {
		for _, s := range parseGitConfig(read(files[i])) {
			switch {
			case s.section == "core" && s.key == "hookspath":
				names = appendBelow(names, top, "", s.value)
			case strings.HasPrefix(s.section, "include") && s.key == "path":
				included := appendBelow(nil, top, path.Dir(files[i]), s.value)
				names = append(names, included...)
				files = append(files, included...)
			}
		}
	}
	return names
}

// appendBelow adds what a value names, counted from dir, unless it lies outside of top.
func appendBelow(names []string, top, dir, value string) []string {
	if strings.HasPrefix(value, "~") {
		return names // the home of the user, or of another one
	}
	if filepath.IsAbs(value) {
		rel, err := filepath.Rel(top, value)
		if err != nil {
			return names
		}
		value = filepath.ToSlash(rel)
	} else {
		value = path.Join(dir, value)
	}
	value = path.Clean(value)
	if path.Base(value) == "_" { // of husky, whose hooks lie beside it
		value = path.Dir(value)
	}
	if first, _, _ := strings.Cut(value, "/"); value == "" || value == "." || value == ".git" || first == ".." {
		return names
	}
	return append(names, value)
}
