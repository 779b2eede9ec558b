//go:build amd64 || arm64

package kernel

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Features are what the kernel, and whatever contains us, let us use.
type Features struct {
	Landlock int  // ABI, 0 for none
	Broker   bool // seccomp listeners
	Memory   bool // reading a child's memory
	GetFD    bool // duplicating a child's descriptors
}

// Scoped reports whether Landlock confines signals.
func (f Features) Scoped() bool { return f.Landlock >= 6 }

// Missing switches features off, so that a test can see what happens without.
type Missing struct {
	LandlockAbove int // 0: keep what there is
	Broker, GetFD bool
}

// Without is f without what is missing.
func (f Features) Without(m Missing) Features {
	if m.LandlockAbove > 0 {
		f.Landlock = min(f.Landlock, m.LandlockAbove)
	}
	f.Broker = f.Broker && !m.Broker
	f.GetFD = f.GetFD && !m.GetFD
	return f
}

// Probe tries what it reports.
func Probe() Features {
	f := Features{Landlock: LandlockABI(), Memory: canReadMemory(), GetFD: canGetFD()}
	f.Broker = f.Memory && canListen()
	return f
}

// canListen installs a harmless filter with a listener on a thread that ends, and asks
// that. The one fails on old kernels and below a filter that has a listener already, the
// other below a filter that refuses such requests, as it may refuse any.
func canListen() bool {
	result := make(chan bool)
	go OnThrowawayThread(func() { result <- listens() })
	return <-result
}

// listens is canListen for the calling thread, which keeps the filter.
func listens() bool {
	if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return false
	}
	code := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
	fd, err := InstallFilter(code, true)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return listenerAnswers(fd)
}

// listenerAnswers asks a listener for a question that nobody has asked.
func listenerAnswers(fd int) bool {
	var id uint64
	_, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&id)))
	return e == unix.ENOENT
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
