// Package filetest is what the tests of the sandbox's packages have in common: files
// that are put somewhere, and looked for, and a program that looks as if it had ended.
package filetest

import (
	"os"
	"path/filepath"
	"testing"
)

// Put writes a file, and makes the directories above it.
func Put(t testing.TB, path, text string) {
	t.Helper()
	Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	Must(t, os.WriteFile(path, []byte(text), 0o644))
}

// Exists reports whether anything is at path, also a link that leads nowhere.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Must ends the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// OwnCaches gives a test a place of its own for the caches and run workspaces of all
// workspaces.
func OwnCaches(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
}
