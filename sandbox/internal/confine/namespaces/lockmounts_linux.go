//go:build amd64 || arm64

package namespaces

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// lockMounts moves the keeper into a copy of its mounts that the kernel keeps together.
// When a mount namespace ends, its mounts come apart: in a directory that somebody else
// still has open, as commands of another session can, for descriptors are passed through
// sockets, what covered settings, sockets and the host's directory is gone. Mounts that
// came from another user namespace stay where they are, as long as anybody has them open.
// So a process in one of its own takes the copy, and ends when the keeper has joined it.
//
// The keeper joins its user namespace as well. Commands that remained in the outer one
// would have every capability over the inner one and its mounts, for their user made it;
// in the inner one they have those that they were left with.
//
// Where that cannot be done (gVisor) the mounts remain as they were made.
func (k *Keeper) lockMounts() error {
	k.Starting.Lock()
	defer k.Starting.Unlock()
	owner, err := k.ownMounts()
	if err != nil || owner == 0 {
		return err
	}
	dir, err := unix.Open(fmt.Sprintf("/proc/%d", owner), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	handle, err := unix.PidfdOpen(owner, 0)
	if err == unix.ENOSYS { // before Linux 5.3
		return proc.Signal(owner, unix.SIGKILL)
	}
	if err != nil {
		return err
	}
	defer unix.Close(handle)
	a := k.arena // what the owner waits in stays
	var steps []*kernel.Call
	for name, ids := range map[string]string{"uid_map": k.uids, "gid_map": k.gids} {
		const opened = givenErr // the first descriptor that is free
		steps = append(steps, a.Add(unix.SYS_OPENAT, givenIn, a.text(name), unix.O_WRONLY),
			a.Add(unix.SYS_WRITE, opened, a.text(ids), uintptr(len(ids))), a.Add(unix.SYS_CLOSE, opened))
	}
	join := a.Add(unix.SYS_SETNS, givenOut, unix.CLONE_NEWUSER|unix.CLONE_NEWNS)
	end := a.Add(unix.SYS_PIDFD_SEND_SIGNAL, givenOut, uintptr(unix.SIGKILL), 0, 0)
	steps = append(steps, join, end)
	chain(steps...)
	if err := k.run(steps[0], end, dir, handle); err != nil {
		return err
	}
	if cannot(join.Errno()) {
		return nil
	}
	for _, c := range steps {
		if c.Errno() != 0 {
			return notLocked(c)
		}
	}
	return nil
}

// ownMounts makes a process in a user namespace of its own, which has a copy of the
// mounts, and returns its id, 0 where that cannot be done. The ids of that namespace are
// not mapped yet. The caller holds Starting.
func (k *Keeper) ownMounts() (owner int, err error) {
	if err := k.reset(); err != nil {
		return 0, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("socketpair: %w", err)
	}
	defer unix.Close(pair[0])
	// Who sends is told by the number that it has here.
	err = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	a := k.arena
	fork := a.Add(unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_NEWNS|uintptr(unix.SIGCHLD), 0)
	tell := a.Add(unix.SYS_WRITE, givenIn, a.text("."), 1)
	fork.OrElse = tell
	tell.Then(a.Add(unix.SYS_PPOLL)) // it waits for the signal
	if err == nil {
		err = k.run(fork, fork, pair[1])
	}
	unix.Close(pair[1])
	if err != nil {
		return 0, err
	}
	if cannot(fork.Errno()) {
		return 0, nil
	}
	if fork.Errno() != 0 {
		return 0, notLocked(fork)
	}
	control := make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	var n int
	err = kernel.IgnoringEINTR(func() error { _, n, _, _, err = unix.Recvmsg(pair[0], make([]byte, 1), control, 0); return err })
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) == 0 {
		return 0, fmt.Errorf("keeping the mounts together: who has them does not say who it is (%w)", kernel.ErrGone)
	}
	sender, err := unix.ParseUnixCredentials(&messages[0])
	if err != nil {
		return 0, err
	}
	return int(sender.Pid), nil
}

// cannot reports whether an error is that of a kernel that lacks what was asked for.
func cannot(e unix.Errno) bool { return e == unix.ENOSYS || e == unix.EINVAL }

func notLocked(c *kernel.Call) error {
	return fmt.Errorf("keeping the mounts together: system call %d: %w", c.Nr, c.Errno())
}
