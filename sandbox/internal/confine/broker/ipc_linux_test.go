//go:build amd64 || arm64

package broker

import (
	"maps"
	"slices"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/seccomp"
)

// TestIPCCallsAreAsked: the filter asks about the calls that the broker decides, and about
// no other.
func TestIPCCallsAreAsked(t *testing.T) {
	var asked []int32
	for _, nr := range seccomp.IPCCalls {
		asked = append(asked, int32(nr))
	}
	slices.Sort(asked)
	if decided := slices.Sorted(maps.Keys(ipcHandlers())); !slices.Equal(asked, decided) {
		t.Errorf("asked %v, decided %v", asked, decided)
	}
}
