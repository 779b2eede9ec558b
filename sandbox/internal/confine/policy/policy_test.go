package policy

import (
	"path/filepath"
	"testing"
)

func FuzzBelow(f *testing.F) {
	f.Add("/a/b", "/a")
	f.Add("/ab", "/a")
	f.Add("/", "/")
	f.Fuzz(func(t *testing.T, path, root string) {
		path, root = filepath.Clean("/"+path), filepath.Clean("/"+root)
		rel, err := filepath.Rel(root, path)
		want := err == nil && filepath.IsLocal(rel)
		if got := Below(path, []string{root}); got != want {
			t.Errorf("below(%q, %q) = %v", path, root, got)
		}
	})
}
