//go:build amd64 || arm64

package kernel

import (
	"os"
	"runtime"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"golang.org/x/sys/unix"
)

// HandOver runs f in a goroutine that cannot get the calling, locked thread.
func HandOver(f func()) {
	elsewhere := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(elsewhere)
		f()
	}()
	<-elsewhere
	runtime.UnlockOSThread()
}

// OnThrowawayThread runs f on a thread that is destroyed afterwards.
func OnThrowawayThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		HandOver(f)
		return
	}
	f()
}

// MakeThreads has the runtime make threads until it has as many as are wanted,
// which it keeps, while the system has room for more than these.
func MakeThreads(want int) error {
	enough := make(chan struct{})
	defer close(enough)
	for {
		if have, _ := runtime.ThreadCreateProfile(nil); have >= want {
			return nil
		}
		if err := proc.Room(); err != nil {
			return err
		}
		made := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			close(made)
			<-enough
		}()
		<-made
	}
}

// ThreadReserve is for what blocks beside the broker: the file tools and the runtime.
const ThreadReserve = 32
