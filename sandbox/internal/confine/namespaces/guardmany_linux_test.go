//go:build amd64 || arm64

package namespaces

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
)

// TestTooManyToGuard: what cannot be guarded whole is not claimed to be.
func TestTooManyToGuard(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one/.git", "two/.git"} {
		filetest.Must(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	was := maxGuardWalk
	t.Cleanup(func() { maxGuardWalk = was })
	maxGuardWalk = 1
	if _, err := guardGit(Isolation{Workspace: dir}); err == nil || !strings.Contains(err.Error(), "too many to guard") {
		t.Errorf("%v", err)
	}
}
