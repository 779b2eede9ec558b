package skillrepo

import (
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Scheme begins the URI of every published file: skill://<path>/<file>.
const Scheme = "skill://"

// EncodeURI is the URI of a slash-separated path, its segments percent-encoded.
func EncodeURI(p string) string {
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return Scheme + strings.Join(segments, "/")
}

// DecodeURI returns the paths that a URI may mean, likeliest first: it may be
// percent-encoded or written as it is. Nothing for a URI that is none of ours or
// has an empty segment, a "." or a "..", encoded or not.
func DecodeURI(uri string) (paths []string) {
	raw, ok := strings.CutPrefix(uri, Scheme)
	if !ok || !usable(raw) {
		return nil
	}
	segments := strings.Split(raw, "/")
	for i, s := range segments {
		d, err := url.PathUnescape(s)
		if err != nil {
			return []string{raw}
		}
		if strings.Contains(d, "/") || !usable(d) {
			return nil
		}
		segments[i] = d
	}
	if decoded := strings.Join(segments, "/"); decoded != raw {
		return []string{decoded, raw}
	}
	return []string{raw}
}

// usable reports whether p is a path without empty, "." and ".." segments.
func usable(p string) bool { return p != "." && fs.ValidPath(p) && !strings.Contains(p, "\x00") }

// uriPaths gives each skill its path in URIs: the name, or for a nested skill the
// enclosing one's path and the directories between. A nested skill whose
// directory has another name has none, nor has what is nested in it.
func uriPaths(skills []*Skill) map[*Skill]string {
	outerFirst := slices.Clone(skills)
	slices.SortFunc(outerFirst, func(a, b *Skill) int { return strings.Compare(slashedDir(a), slashedDir(b)) })
	byDir := make(map[string]*Skill, len(skills))
	paths := make(map[*Skill]string, len(skills))
	for _, s := range outerFirst {
		dir := slashedDir(s)
		byDir[dir] = s
		outer := enclosing(byDir, dir)
		switch {
		case outer == nil:
			paths[s] = s.Name
		case paths[outer] != "" && path.Base(dir) == s.Name:
			paths[s] = paths[outer] + strings.TrimPrefix(dir, strings.TrimSuffix(slashedDir(outer), "/"))
		}
	}
	return paths
}

// enclosing is the skill in the nearest directory above, nil without one.
func enclosing(byDir map[string]*Skill, dir string) *Skill {
	for up := path.Dir(dir); up != dir; dir, up = up, path.Dir(up) {
		if s := byDir[up]; s != nil {
			return s
		}
	}
	return nil
}
