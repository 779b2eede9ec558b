//go:build unix

package sandbox

import (
	"os/exec"
	"syscall"
)

// apart has a program run in a process group of its own.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
