//go:build amd64 || arm64

package confine

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Harden is for the first lines of a server's main: descriptors that it
// inherited do not reach commands, nothing of its memory is dumped or read, and
// commands inherit that they leave no core files. It ends nothing and may be
// called again.
func Harden() error {
	if err := unix.CloseRange(3, maxDescriptor, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("setrlimit: %w", err)
	}
	return prepareProcess()
}

// prepareProcess makes this process one that can have confined children:
// undumpable, because the thread that starts a command is for that moment in the
// command's domain and shares our memory; the reaper of descendants whose
// parents ended, because they stay ours to see and to end.
var prepareProcess = sync.OnceValue(func() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("undumpable: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("subreaper: %w", err)
	}
	go reapOrphans()
	return nil
})
