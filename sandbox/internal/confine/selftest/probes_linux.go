//go:build amd64 || arm64

package selftest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

// Failure says what could not be shown to hold, nil when all did.
func (s Status) Failure() error {
	if s.err != nil {
		return fmt.Errorf("the self-test could not run: %w", s.err)
	}
	var missing []string
	for _, check := range []Check{s.Files, s.Network, s.Signals} {
		if !check.Proven {
			missing = append(missing, check.Detail)
		}
	}
	if missing != nil {
		return fmt.Errorf("commands are not confined: %s", strings.Join(missing, "; "))
	}
	return nil
}

// Unproven is a Status of what could not be tried, and why.
func (s Status) Unproven(err error) Status {
	c := Check{Detail: "the self-test could not run: " + err.Error()}
	s.Files, s.Network, s.Signals, s.Kill, s.err = c, c, c, c, err
	return s
}

// Verdict compares what a call gave outside with what it gave confined.
func Verdict(what string, free, caged unix.Errno) Check {
	switch {
	case free != 0:
		return Check{Detail: fmt.Sprintf("could not try to %s: even outside it fails (%v)", what, free)}
	case caged == 0:
		return Check{Detail: fmt.Sprintf("a confined process could %s", what)}
	}
	return Check{Proven: true, Detail: fmt.Sprintf("a confined process tried to %s: %v", what, caged)}
}

// Canary returns a readable file that the policy does not allow.
func Canary(p policy.Policy) (name string, cleanup func()) {
	for _, dir := range []string{os.TempDir(), "/var/tmp", "/run"} {
		f, err := os.CreateTemp(dir, ".canary-*")
		if err != nil {
			continue
		}
		f.Close()
		if !p.Allows(f.Name(), false) {
			return f.Name(), func() { os.Remove(f.Name()) }
		}
		os.Remove(f.Name())
	}
	return "/etc/passwd", func() {}
}

// Results are those of the forbidden calls.
type Results struct {
	Read, Socket, Signal unix.Errno
	Beyond               unix.Errno // of a connection past the gateway
	Mode                 int        // seccomp's
}

// A probeRun is the program of the process that makes them.
type probeRun struct {
	calls [4]kernel.Call
	path  [unix.PathMax]byte
	pin   runtime.Pinner
}

// NewProbe prepares the calls: to read a file, to open a socket of a family, to signal a
// process.
func NewProbe(canary string, target, family int) *probeRun {
	r := new(probeRun)
	r.pin.Pin(r)
	copy(r.path[:len(r.path)-1], canary)
	cwd, kind := unix.AT_FDCWD, unix.SOCK_DGRAM
	if family == unix.AF_UNIX {
		kind = unix.SOCK_RAW // which the kernel takes for that
	}
	r.calls = [4]kernel.Call{
		{Nr: unix.SYS_OPENAT, Args: [6]uintptr{uintptr(cwd), uintptr(unsafe.Pointer(&r.path[0])), unix.O_RDONLY | unix.O_CLOEXEC}},
		{Nr: unix.SYS_SOCKET, Args: [6]uintptr{uintptr(family), uintptr(kind | unix.SOCK_CLOEXEC), 0}},
		{Nr: unix.SYS_KILL, Args: [6]uintptr{uintptr(target), 0}},
		{Nr: unix.SYS_PRCTL, Args: [6]uintptr{unix.PR_GET_SECCOMP}},
	}
	for i := range r.calls[:3] {
		r.calls[i].Then(&r.calls[i+1])
	}
	return r
}

// Run makes the calls in a child of the calling thread.
func (r *probeRun) Run() (Results, error) {
	defer r.pin.Unpin()
	pid, err := kernel.Spawn(unix.CLONE_VM, &r.calls[0])
	if err != nil {
		return Results{}, err
	}
	kernel.ReapClone(pid)
	return Results{Read: r.calls[0].Errno(), Socket: r.calls[1].Errno(), Signal: r.calls[2].Errno(),
		Mode: int(r.calls[3].Ret)}, nil
}

// Outside makes the calls outside of any confinement.
func Outside(canary string, family int) (Results, error) {
	return NewProbe(canary, os.Getpid(), family).Run()
}
