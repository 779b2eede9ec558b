package sandbox

import (
	"path"
	"strings"
)

// guarded reports whether rel is in a .git, at any depth, and decides what git
// executes for its user: all but what git itself writes when it commits, merges
// and fetches. Case is ignored everywhere, because a disk may ignore it.
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
	for _, pattern := range []string{"objects", "refs", "logs", "index", "HEAD", "*_HEAD", "MERGE_*", "COMMIT_EDITMSG", "packed-refs"} {
		if ok, _ := path.Match(pattern, strings.TrimSuffix(name, ".lock")); ok {
			return true
		}
	}
	return false
}

// guard fails for a place that FS.Guarded keeps from being changed.
func (f *FS) guard(name string, p Path) error {
	if f.Guarded && guarded(p.Rel) {
		return &PathError{Path: name, Err: ErrGuarded}
	}
	return nil
}
