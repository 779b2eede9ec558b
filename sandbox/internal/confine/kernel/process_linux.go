//go:build amd64 || arm64

package kernel

import (
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// Harden is for the first lines of a server's main: descriptors that it
// inherited do not reach commands, nothing of its memory is dumped or read, and
// commands inherit that they leave no core files. It ends nothing and may be
// called again.
func Harden() error {
	debug.SetMaxThreads(maxThreads)
	if err := unix.CloseRange(3, MaxDescriptor, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("setrlimit: %w", err)
	}
	return undumpable()
}

// maxThreads is where the runtime gives up: far above what the commands of all
// sessions can make the server use, one for each that runs.
const maxThreads = 1 << 16

// PrepareProcess makes this process one that can have confined children:
// undumpable, because the thread that starts a command is for that moment in the
// command's domain and shares our memory; the reaper of descendants whose
// parents ended, because they stay ours to see and to end.
func PrepareProcess() error {
	if err := undumpable(); err != nil {
		return err
	}
	proc.Adopt()
	return nil
}

var undumpable = sync.OnceValue(func() error {
	proc.Prepare() // opens what an undumpable process cannot
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("undumpable: %w", err)
	}
	return nil
})
