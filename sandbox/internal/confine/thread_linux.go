//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onConfinedThread confines a fresh thread for d, reports on ready, then runs
// one job there. The goroutine ends with its thread locked, so the runtime
// destroys the thread instead of using it for something else.
func (d *Domain) onConfinedThread(ready chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() { // the main thread cannot be destroyed
		handOver(func() { d.onConfinedThread(ready) })
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

// handOver runs f in a goroutine that cannot get the calling, locked thread.
func handOver(f func()) {
	elsewhere := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(elsewhere)
		f()
	}()
	<-elsewhere
	runtime.UnlockOSThread()
}

// confineThread restricts the calling thread. The watcher is made between the
// two Landlock domains: outside of the commands' own, above it in rank.
func (d *Domain) confineThread() (err error) {
	d.tid = unix.Gettid()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	c := d.confiner
	if c.kernel.scoped() {
		if err := restrictThread(c.outer); err != nil {
			return err
		}
		if d.watcher, err = newWatcher(); err != nil {
			return err
		}
	}
	if c.kernel.Landlock > 0 {
		if err := restrictThread(c.ruleset); err != nil {
			return err
		}
	}
	if err := dropCaps(); err != nil {
		return err
	}
	d.listener, err = installFilter(forThread(c.filter, d.tid), c.kernel.Broker)
	return err
}

// installFilter puts the calling thread under the filter and returns the
// listener for its questions, -1 when none was asked for.
func installFilter(code []unix.SockFilter, listen bool) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// The filter is no reason to slow down speculation (before 5.16 it was).
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW)
	if listen {
		flags |= unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	fd, e := seccomp(flags, &prog)
	if e == unix.EINVAL && listen { // before 5.19: signals may interrupt a question
		fd, e = seccomp(flags&^unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog)
	}
	if e != 0 {
		return -1, fmt.Errorf("seccomp: %w", e)
	}
	if !listen {
		return -1, nil
	}
	return fd, nil
}

func seccomp(flags uintptr, prog *unix.SockFprog) (int, unix.Errno) {
	fd, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(prog)))
	return int(fd), e
}
