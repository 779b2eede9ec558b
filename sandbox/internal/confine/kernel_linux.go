//go:build amd64 || arm64

package confine

import (
	"os"

	"golang.org/x/sys/unix"
)

// features are what the kernel, and whatever contains us, let us use.
type features struct {
	Landlock int  // ABI, 0 for none
	Broker   bool // seccomp listeners
	Memory   bool // reading a child's memory
	GetFD    bool // duplicating a child's descriptors
}

// scoped reports whether Landlock confines signals.
func (f features) scoped() bool { return f.Landlock >= 6 }

// missing switches features off, so that a test can see what happens without.
type missing struct {
	landlockAbove int // 0: keep what there is
	broker, getFD bool
}

func (f features) without(m missing) features {
	if m.landlockAbove > 0 {
		f.Landlock = min(f.Landlock, m.landlockAbove)
	}
	f.Broker = f.Broker && !m.broker
	f.GetFD = f.GetFD && !m.getFD
	return f
}

// probe tries what it reports.
func probe() features {
	f := features{Landlock: landlockABI(), Memory: canReadMemory(), GetFD: canGetFD()}
	f.Broker = f.Memory && canListen()
	return f
}

// canListen installs a harmless filter with a listener on a thread that ends.
// That fails on old kernels and below a filter that has a listener already.
func canListen() bool {
	result := make(chan bool)
	go onThrowawayThread(func() {
		if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
			result <- false
			return
		}
		code := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
		fd, err := installFilter(code, true)
		if err == nil {
			unix.Close(fd)
		}
		result <- err == nil
	})
	return <-result
}

func canGetFD() bool {
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false
	}
	defer unix.Close(self)
	fd, err := unix.PidfdGetfd(self, self, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}
