//go:build amd64 || arm64

package seccomp

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// WithoutSetID is start for a process that cannot make files with the set-id bits, nor
// can its descendants: for commands whose files others see than those that they are
// kept from. Little else is refused to them: the calls of foreign architectures, to open
// files neither to read nor to write, and what would keep them from being killed.
func WithoutSetID(start func() (pid int, err error)) func() (pid int, err error) {
	return func() (pid int, err error) {
		done := make(chan struct{})
		go onThreadWithoutSetID(func(refused error) {
			defer close(done)
			if err = refused; err == nil {
				pid, err = start()
			}
		})
		<-done
		return pid, err
	}
}

// onThreadWithoutSetID runs f on a thread of its own, which ends with it.
func onThreadWithoutSetID(f func(refused error)) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() { // the main thread cannot be destroyed
		kernel.HandOver(func() { onThreadWithoutSetID(f) })
		return
	}
	f(refuseSetID())
}

// refuseSetID restricts the calling thread, where the kernel can.
func refuseSetID() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	rules := append(modeRules(), creationRules(Options{truncate: true})...)
	rules = append(rules, tracingRule())
	_, err := kernel.InstallFilter(assemble(auditArch, unix.SYS_RSEQ_SLICE_YIELD, rules), false)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}
