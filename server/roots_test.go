package server

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/skillrepo"
)

// TestRootsInTheWorkspace: of a --skills directory that commands can write, links
// that lead out are not followed; those of one that they cannot write are.
func TestRootsInTheWorkspace(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", base+"/home")
	const text = "---\nname: far\ndescription: d\n---\n"
	err = errors.Join(os.MkdirAll(base+"/ws/sk", 0o755), os.MkdirAll(base+"/mine", 0o755), os.MkdirAll(base+"/far", 0o755),
		os.MkdirAll(base+"/w/sk", 0o755), os.WriteFile(base+"/far/SKILL.md", []byte(text), 0o644))
	for _, dir := range []string{"/ws/sk", "/mine", "/w/sk"} {
		err = errors.Join(err, os.Symlink(base+"/far", base+dir+"/far"))
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := files.Open(base+"/ws", sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for dir, want := range map[string]int{"/ws/sk": 0, "/w/sk": 0, "/mine": 1} {
		roots, err := Roots(files, []string{base + dir}, true, base+"/w")
		if err != nil {
			t.Fatal(err)
		}
		repo, err := skillrepo.Open(t.Context(), roots, skillrepo.Options{})
		if err != nil || len(repo.List()) != want {
			t.Errorf("%s: %d skills, want %d (%v, %v)", dir, len(repo.List()), want, repo.Diagnostics(), err)
		}
	}
}
