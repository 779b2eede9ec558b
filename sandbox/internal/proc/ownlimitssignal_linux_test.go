//go:build amd64 || arm64

package proc

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOwnLimitsDespiteTraps: a trap that another command sends is not taken for the end of
// the call that a stopped program is made to make: its limits are those that were set.
func TestOwnLimitsDespiteTraps(t *testing.T) {
	runtime.LockOSThread() // who traces is a thread
	defer runtime.UnlockOSThread()
	pid, err := Start(func() (int, error) { return forking(os.Stderr, "/bin/sleep", "1005")(true) })
	must(t, err)
	defer func() { _ = Signal(pid, unix.SIGKILL); _, _ = Wait(pid) }()
	if !stopped(pid) {
		t.Fatal("it does not stop")
	}
	want := unix.Rlimit{Cur: 11, Max: 12}
	must(t, Signal(pid, unix.SIGTRAP))
	must(t, prlimitBy(pid, unix.RLIMIT_NOFILE, &want, nil))
	var has unix.Rlimit
	must(t, Signal(pid, unix.SIGTRAP))
	must(t, prlimitBy(pid, unix.RLIMIT_NOFILE, nil, &has))
	if has != want {
		t.Errorf("it is told to have %+v", has)
	}
	must(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &has))
	if has != want {
		t.Errorf("it has %+v", has)
	}
	must(t, unix.PtraceDetach(pid))
}
