//go:build unix

package process

import "golang.org/x/sys/unix"

// candidates are the files that a name of a program can mean: it alone.
func candidates(file string) []string { return []string{file} }

// mayExecute asks the system, which knows of more than mode bits.
func mayExecute(file string) bool { return unix.Access(file, unix.X_OK) == nil }
