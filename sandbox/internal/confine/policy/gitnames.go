package policy

import (
	"path"
	"path/filepath"
	"strings"
)

// NamedByGit lists what the settings of the repository at top name in its tree that
// git runs or takes for settings: slash-separated, below top.
func NamedByGit(config, top string) (names []string) {
	section := ""
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(strings.ToLower(line[1:]), "]")
			section, _, _ = strings.Cut(head, " ")
			line = line[len(line)-len(rest):]
		}
		key, value, _ := strings.Cut(line, "=")
		value = strings.ReplaceAll(strings.Trim(strings.TrimSpace(value), `"`), `\\`, `\`)
		switch key = strings.ToLower(strings.TrimSpace(key)); {
		case section == "core" && key == "hookspath":
			names = appendBelow(names, top, "", value)
		case strings.HasPrefix(section, "include") && key == "path":
			names = appendBelow(names, top, ".git", value)
		}
	}
	return names
}

// appendBelow adds what a value names, counted from dir, unless it lies outside of
// top or in .git, which has a guard of its own.
func appendBelow(names []string, top, dir, value string) []string {
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
	if first, _, _ := strings.Cut(value, "/"); value == "." || first == ".." || first == ".git" {
		return names
	}
	return append(names, value)
}
