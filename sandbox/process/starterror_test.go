package process

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
)

// TestStartErrorNamesItsCause: a fault of the program is told from one of what had to
// be done before it could be tried.
func TestStartErrorNamesItsCause(t *testing.T) {
	c, l := &Command{Name: "bash"}, launch{Launch: tree.Launch{Path: "/bin/bash", Dir: t.TempDir()}}
	if err := startError(c, l, syscall.EACCES); !errors.Is(err, ErrNotExecutable) {
		t.Error(err)
	}
	if err := startError(c, l, &fs.PathError{Op: "fork/exec", Path: "/bin/bash", Err: syscall.EACCES}); !errors.Is(err, ErrNotExecutable) {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"cannot confine a thread: seccomp": fmt.Errorf("cannot confine a thread: seccomp: %w", syscall.EACCES),
		"/proc/1/uid_map":                  &fs.PathError{Op: "open", Path: "/proc/1/uid_map", Err: syscall.EACCES},
		"no namespaces":                    fmt.Errorf("no namespaces: %w", &fs.PathError{Op: "open", Path: "/proc/1/gid_map", Err: syscall.EPERM}),
	} {
		if err := startError(c, l, err); errors.Is(err, ErrNotExecutable) || !strings.Contains(err.Error(), what) {
			t.Error(err)
		}
	}
}
