//go:build amd64 || arm64

package kernel

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// KeptCaps are what root keeps: enough to own and change its files inside the
// workspace, nothing that reaches other processes or the machine.
const KeptCaps = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID

// DropCaps takes every other capability from the calling thread, for good.
func DropCaps() error {
	for c := uintptr(0); c <= 63; c++ {
		if KeptCaps&(1<<c) != 0 {
			continue
		}
		// EINVAL: past the last one. EPERM: a plain user, who has none to lose.
		if unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) != nil {
			break
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // absent before 4.3
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&hdr, &now[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	now[0] = unix.CapUserData{Effective: now[0].Effective & KeptCaps, Permitted: now[0].Permitted & KeptCaps}
	now[1] = unix.CapUserData{}
	if err := unix.Capset(&hdr, &now[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}
