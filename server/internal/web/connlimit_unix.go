//go:build unix

package web

import "syscall"

// descriptors is how many this program may have open.
func descriptors() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 2 * mostConns
	}
	return int(min(uint64(limit.Cur), 2*mostConns))
}
