//go:build amd64 || arm64

package kernel

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// FdPath names what a descriptor of ours refers to, wherever it was moved.
func FdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// IsDir reports whether a descriptor is of a directory.
func IsDir(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// MaxDescriptor is above every descriptor; the last argument of close_range(2)
// is an int to some who emulate Linux.
const MaxDescriptor = 1<<31 - 1
