package skillrepo

import (
	"path"
	"strings"
)

// MatchesPath reports whether the skill's paths hold for a file of the given
// workspace directory. file may be relative to the workspace or absolute; a
// pattern is tried on the whole relative path and on its last element. A skill
// without paths matches every file inside the workspace.
func (s *Skill) MatchesPath(file, workspace string) bool {
	rel, ok := relativeTo(file, workspace)
	if !ok || len(s.Paths) == 0 {
		return ok
	}
	for _, g := range s.globs {
		if g.Match(rel) || g.Match(path.Base(rel)) {
			return true
		}
	}
	return false
}

// relativeTo is the lexical path of file below workspace; ok is false outside it
// and for the workspace itself.
func relativeTo(file, workspace string) (rel string, ok bool) {
	file, workspace = slashed(file), path.Clean(slashed(workspace))
	if path.IsAbs(file) || hasDrive(file) {
		file = path.Clean(file)
		if file, ok = strings.CutPrefix(file, strings.TrimSuffix(workspace, "/")+"/"); !ok {
			return "", false
		}
	}
	rel = path.Clean(file)
	return rel, rel != "." && rel != ".." && !strings.HasPrefix(rel, "../")
}

func slashed(p string) string { return strings.ReplaceAll(p, `\`, "/") }

func hasDrive(p string) bool {
	return len(p) > 2 && p[1] == ':' && p[2] == '/' && (p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z')
}
