//go:build amd64 || arm64

package confine

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// waiting starts a child that ends with this process: where there is no broker nobody can
// end it by a signal. In a group of its own it is collected when it is left behind.
func waiting(attr *syscall.SysProcAttr) (pid int, err error) {
	child := exec.Command("cat")
	child.SysProcAttr = attr
	if _, err := child.StdinPipe(); err != nil {
		return 0, err
	}
	if err := child.Start(); err != nil {
		return 0, err
	}
	return child.Process.Pid, nil
}

// seizeForExit traces a child so that it stops at its exit.
func seizeForExit() error {
	pid, err := waiting(&syscall.SysProcAttr{Setpgid: true})
	if err != nil {
		return err
	}
	return syscallErr(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACEEXIT)
}

// setForExit traces a child first, and then says so, by the request of that number.
func setForExit(request uintptr) func() error {
	return func() error {
		pid, err := waiting(&syscall.SysProcAttr{Setpgid: true, Ptrace: true})
		if err != nil {
			return err
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
			return err
		}
		return syscallErr(unix.SYS_PTRACE, request, uintptr(pid), 0, unix.PTRACE_O_TRACEEXIT)
	}
}
