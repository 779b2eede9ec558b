package containers

import (
	"os/exec"
	"syscall"
)

// killGroup kills a program. What it started ends by its closed streams.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// apart has a program run in a process group of its own.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
