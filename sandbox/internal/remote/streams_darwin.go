package remote

import "golang.org/x/sys/unix"

// dupOver makes to another number of a descriptor.
func dupOver(from, to int) error { return unix.Dup2(from, to) }
