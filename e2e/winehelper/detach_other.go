//go:build !windows

package main

import "os/exec"

// detach does nothing: the program is made for Windows.
func detach(*exec.Cmd) {}
