//go:build unix

package environ

import "golang.org/x/sys/unix"

// candidates are the files that a name of a program can mean: it alone.
func candidates(file string) []string { return []string{file} }

// MayExecute asks the system, which knows of more than mode bits.
func MayExecute(file string) bool { return unix.Access(file, unix.X_OK) == nil }
