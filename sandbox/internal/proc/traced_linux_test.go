package proc

import (
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWaitForTraced: a child that has itself traced by this process has not ended when it
// stops.
func TestWaitForTraced(t *testing.T) {
	runtime.LockOSThread() // the end of the thread would be that of the tracing
	defer runtime.UnlockOSThread()
	pid, err := Start(func() (int, error) {
		return syscall.ForkExec("/bin/sh", []string{"sh", "-c", "exit 7"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Ptrace: true}})
	})
	must(t, err)
	ended := make(chan syscall.WaitStatus, 1)
	go func() {
		status, _ := Wait(pid)
		ended <- status
	}()
	eventually(t, "it is not traced", func() bool {
		return strings.HasPrefix(StatusField(pid, "State"), "t")
	})
	must(t, unix.Kill(pid, unix.SIGKILL))
	if status := <-ended; !status.Signaled() || status.Signal() != unix.SIGKILL {
		t.Errorf("it ended with %#x, and was killed", status)
	}
	if Known(pid) {
		t.Error("a collected child is known")
	}
}
