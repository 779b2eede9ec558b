//go:build linux || darwin

package network

import "golang.org/x/sys/unix"

// descriptors returns how many this process may have open.
func descriptors() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return relaysOfAll // as most systems have it
	}
	return limit.Cur
}
