//go:build amd64 || arm64

package threads

import (
	"fmt"
	"os"
	"runtime"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/seccomp"
	"golang.org/x/sys/unix"
)

// onConfinedThread confines a fresh thread for d, reports on ready, then runs
// one job there. The goroutine ends with its thread locked, so the runtime
// destroys the thread instead of using it for something else.
func (d *Domain) onConfinedThread(ready chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() { // the main thread cannot be destroyed
		kernel.HandOver(func() { d.onConfinedThread(ready) })
		return
	}
	defer threads.unlock()
	err := d.confineThread()
	ready <- err
	if err != nil {
		return
	}
	if job, ok := <-d.job; ok {
		job()
	}
}

// confineThread restricts the calling thread. The watcher is made between the
// two Landlock domains: outside of the commands' own, above it in rank.
func (d *Domain) confineThread() (err error) {
	d.tid = unix.Gettid()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	c := d.confiner
	if c.Kernel.Scoped() {
		if err := kernel.RestrictThread(c.outer); err != nil {
			return err
		}
		if d.Watcher, err = newWatcher(); err != nil {
			return err
		}
	}
	if c.Kernel.Landlock > 0 {
		if err := kernel.RestrictThread(c.ruleset); err != nil {
			return err
		}
	}
	if err := kernel.DropCaps(); err != nil {
		return err
	}
	d.listener, err = kernel.InstallFilter(seccomp.ForThread(c.filter, d.tid), c.Kernel.Broker)
	return err
}
