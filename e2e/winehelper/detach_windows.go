package main

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// detach takes a process out of the console and the group of this one.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}
