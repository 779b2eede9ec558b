//go:build amd64 || arm64

package namespaces

import (
	"errors"
	"fmt"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// lockMounts moves the keeper into a copy of its mounts that the kernel keeps together.
// When a mount namespace ends, its mounts come apart: in a directory that somebody else
// still has open, as commands of another session can, for descriptors are passed through
// sockets, what covered settings, sockets and the host's directory is gone. Mounts that
// came from another user namespace stay where they are, as long as anybody has them open.
// So a process in one of its own takes the copy, and ends when the keeper has joined it.
//
// Where that cannot be done (gVisor) the mounts remain as they were made.
func (k *Keeper) lockMounts() error {
	k.Starting.Lock()
	defer k.Starting.Unlock()
	if err := k.reset(); err != nil {
		return err
	}
	a := k.arena
	// No file comes with the request, so the first descriptor that is free is the owner's.
	const owner = givenIn
	fork := a.Add(unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_NEWNS|unix.CLONE_PIDFD|uintptr(unix.SIGCHLD), 0, pointer(a, int64(0)))
	fork.OrElse, fork.Must = a.Add(unix.SYS_PPOLL), address(k.tidy) // it waits for the signal
	join := a.Add(unix.SYS_SETNS, owner, unix.CLONE_NEWNS)
	end := a.Add(unix.SYS_PIDFD_SEND_SIGNAL, owner, uintptr(unix.SIGKILL), 0, 0)
	fork.Next = join
	join.Then(end)
	if err := k.run(fork, end); err != nil {
		return err
	}
	for _, c := range []*kernel.Call{fork, join} {
		switch e := c.Errno(); {
		case errors.Is(e, unix.ENOSYS) || errors.Is(e, unix.EINVAL):
			return nil
		case e != 0:
			return fmt.Errorf("keeping the mounts together: system call %d: %w", c.Nr, e)
		}
	}
	return nil
}
