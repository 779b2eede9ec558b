package proc

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// DescriptorRoom returns an error when so few descriptors are free, or that part of all
// where it is less. The system hands out the lowest one first, so the next one tells how
// many are in use.
func DescriptorRoom(open *os.File, spare, part uint64) error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return nil
	}
	next, err := unix.FcntlInt(open.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	unix.Close(next)
	if uint64(next)+min(spare, limit.Cur/part) < limit.Cur {
		return nil
	}
	return fmt.Errorf("%d of the server's %d descriptors are in use: %w", next, limit.Cur, unix.EMFILE)
}

// DescriptorShare is how many descriptors this program may have, divided by parts.
func DescriptorShare(parts int) int {
	limit := unix.Rlimit{Cur: math.MaxInt32}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return int(min(limit.Cur, math.MaxInt32)) / parts
}
