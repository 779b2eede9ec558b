//go:build unix

package containers

import (
	"os/exec"
	"syscall"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// killGroup kills a program that was started apart, and what belongs to its group.
func killGroup(cmd *exec.Cmd) {
	_ = proc.Signal(-cmd.Process.Pid, syscall.SIGKILL)
}

// apart has a program run in a process group of its own.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
