//go:build unix && !linux

package proc

import "syscall"

// Adopt does nothing here: orphans go to init, which collects them.
func Adopt() {}

// Wait collects a child and returns how it ended.
func Wait(pid int) (status syscall.WaitStatus, err error) {
	for {
		if _, err = syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			return status, err
		}
	}
}

// Ticks is not known here.
func Ticks() uint64 { return 0 }
