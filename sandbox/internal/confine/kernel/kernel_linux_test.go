//go:build amd64 || arm64

package kernel

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestListenerBehindWalls: a listener that can be made but not asked, as below a
// filter around this program, is none: who waited for its answers would wait for ever.
func TestListenerBehindWalls(t *testing.T) {
	if !Probe().Broker {
		t.Skip("there are no listeners here")
	}
	result := make(chan bool)
	go OnThrowawayThread(func() {
		refuseRequests(t)
		result <- listens()
	})
	if <-result {
		t.Error("a listener that cannot be asked is taken for one")
	}
}

// refuseRequests puts the calling thread under a filter as commands are, in which a
// request that they do not need is refused.
func refuseRequests(t *testing.T) {
	const nr, request = 0, 24 // in seccomp_data
	code := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: nr},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_IOCTL, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: request},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SECCOMP_IOCTL_NOTIF_ID_VALID, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOTTY)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Error(err)
	}
	if _, err := InstallFilter(code, false); err != nil {
		t.Error(err)
	}
}
