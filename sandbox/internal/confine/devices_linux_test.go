//go:build amd64 || arm64

package confine

import (
	"errors"
	"os"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

// The devices that commands have are the machine's: what root makes of them there stays.
// These set a mode that is the same.
func init() {
	probeTable["device-mode"] = escape{root: true, try: func() error {
		mode, err := nullMode(unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0))
		if err != nil {
			return err
		}
		return unix.Chmod(os.DevNull, mode)
	}}
	probeTable["device-mode-by-stdin"] = escape{root: true, try: func() error {
		mode, err := nullMode(0, nil)
		if err != nil {
			return err
		}
		return unix.Fchmod(0, mode)
	}}
}

// Whoever changes the directory of shared memory takes it from every other user, or opens
// their files there to all. In namespaces it is the session's own.
func init() {
	shared := func(change func(fd int, st *unix.Stat_t) error) escape {
		return escape{root: true, try: func() error {
			fd, err := unix.Open(policy.SharedMemory, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			var st unix.Stat_t
			if err := unix.Fstat(fd, &st); err != nil {
				return err
			}
			return change(fd, &st)
		}}
	}
	probeTable["shared-memory-mode"] = shared(func(_ int, st *unix.Stat_t) error { return unix.Chmod(policy.SharedMemory, st.Mode&0o7777) })
	probeTable["shared-memory-mode-by-descriptor"] = shared(func(fd int, st *unix.Stat_t) error { return unix.Fchmod(fd, st.Mode&0o7777) })
	probeTable["shared-memory-owner"] = shared(func(_ int, st *unix.Stat_t) error {
		return unix.Chown(policy.SharedMemory, int(st.Uid), int(st.Gid))
	})
}

// nullMode is the mode of the null device, which is open.
func nullMode(fd int, err error) (mode uint32, _ error) {
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err == nil && st.Rdev != unix.Mkdev(1, 3) {
		err = errors.New("this is not the null device")
	}
	return st.Mode & 0o777, err
}
