package sandbox

import (
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
)

// TestWatchersAreNoStrays: the processes of the confinement itself look like what
// a command left behind. The end of a session must not wait for them: they take
// no signal, and end with their domains.
func TestWatchersAreNoStrays(t *testing.T) {
	s := confinedShell(t, Config{})
	if res := run(t, s, sh("true")); res.ExitCode != 0 {
		t.Fatal(res)
	}
	watchers := 0
	for _, p := range processes() {
		if !confine.IsWatcher(p.pid) {
			continue
		}
		if watchers++; orphan(p) {
			t.Errorf("%+v would be ended as a stray", p)
		}
	}
	if watchers == 0 {
		t.Skip("no watchers on a kernel that does not scope signals")
	}
}
