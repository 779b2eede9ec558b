package process

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
)

// TestStartErrorNamesItsCause: a fault of the program is told from one of what had to
// be done before it could be tried.
func TestStartErrorNamesItsCause(t *testing.T) {
	c, l := &Command{Name: "bash"}, launched{Launch: tree.Launch{Path: "/bin/bash", Dir: t.TempDir()}}
	if err := startError(c, l, syscall.EACCES); !errors.Is(err, ErrNotExecutable) {
		t.Error(err)
	}
	err := startError(c, l, fmt.Errorf("cannot confine a thread: seccomp: %w", syscall.EACCES))
	if errors.Is(err, ErrNotExecutable) || !strings.Contains(err.Error(), "cannot confine a thread: seccomp") {
		t.Error(err)
	}
}
