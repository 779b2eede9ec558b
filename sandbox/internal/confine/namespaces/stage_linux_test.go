//go:build amd64 || arm64

package namespaces

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStageErrors: what is wanting is known to be, also when the stage says so.
func TestStageErrors(t *testing.T) {
	full := stageError(fmt.Sprintf("%d /tmp: %v", unix.ENOSPC, unix.ENOSPC))
	if !errors.Is(full, unix.ENOSPC) || full.Error() != "/tmp: "+unix.ENOSPC.Error() {
		t.Error(full)
	}
	if other := stageError("0 it is too large"); other.Error() != "it is too large" {
		t.Error(other)
	}
}
