package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnguardedWorkspaceIsTriedAgain: where the workspace cannot be guarded, commands are
// refused until that is mended, and not until the server is started again.
func TestUnguardedWorkspaceIsTriedAgain(t *testing.T) {
	dir := filepath.Join(gitRepository(t), "main")
	link := filepath.Join(dir, ".git", "hooks", "pre-commit")
	if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink("../../nowhere", link)); err != nil {
		t.Fatal(err)
	}
	if free, _ := newShell(t, Config{Dir: t.TempDir(), Sandbox: Isolate}); free.c.confinement.ready() != nil {
		t.Skip("there are no namespaces: ", free.c.confinement.ready())
	}
	s, _ := newShell(t, Config{Dir: dir, Sandbox: Isolate})
	_, err := s.Run(t.Context(), sh("true"))
	if !errors.Is(err, ErrUnconfined) || !strings.Contains(err.Error(), "remove the link") {
		t.Fatalf("not refused for the link: %v", err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if res, err := s.Run(t.Context(), sh("true")); err != nil || res.ExitCode != 0 {
		t.Errorf("without the link: %v, exit code %d", err, res.ExitCode)
	}
}
