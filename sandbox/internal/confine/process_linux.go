//go:build amd64 || arm64

package confine

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// Harden is for the first lines of a server's main: descriptors that it
// inherited do not reach commands, nothing of its memory is dumped or read, and
// commands inherit that they leave no core files. It ends nothing and may be
// called again.
func Harden() error {
	debug.SetMaxThreads(maxThreads)
	if err := unix.CloseRange(3, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("setrlimit: %w", err)
	}
	return prepareProcess()
}

// maxThreads is where the runtime gives up: far above what the commands of all
// sessions can make the server use, one for each that runs.
const maxThreads = 1 << 16

// reserveThreads leaves the runtime some threads that have nothing to do, because
// it cannot go on when it needs one and commands have used up the processes that
// the system permits.
var reserveThreads = sync.OnceFunc(func() {
	const many = 16
	var begun, over sync.WaitGroup
	var line [2]int
	if unix.Pipe2(line[:], unix.O_CLOEXEC) != nil {
		return
	}
	begun.Add(many)
	for range many {
		over.Go(func() {
			begun.Done()
			_, _ = unix.Read(line[0], make([]byte, 1)) // holds its thread until the line breaks
		})
	}
	begun.Wait()
	time.Sleep(20 * time.Millisecond) // in which the runtime makes up for those that wait
	unix.Close(line[1])
	over.Wait()
	unix.Close(line[0])
})

// prepareProcess makes this process one that can have confined children:
// undumpable, because the thread that starts a command is for that moment in the
// command's domain and shares our memory; the reaper of descendants whose
// parents ended, because they stay ours to see and to end.
var prepareProcess = sync.OnceValue(func() error {
	proc.Prepare() // opens what an undumpable process cannot
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("undumpable: %w", err)
	}
	proc.Adopt()
	return nil
})
