//go:build unix

package main

import (
	"net"
	"os"
	"syscall"
)

// privately makes what bind creates accessible to this user alone, from its
// first moment on. The mask is the process's, so this is for start-up only.
func privately(bind func() (net.Listener, error)) (net.Listener, error) {
	defer syscall.Umask(syscall.Umask(0o177))
	return bind()
}

func readableByOthers(info os.FileInfo) bool { return info.Mode().Perm()&0o044 != 0 }
