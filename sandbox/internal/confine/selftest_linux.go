//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

// Status tries out what the sandbox promises, once: a process outside makes the
// forbidden calls and must succeed, a confined one makes them and must fail.
func (c *Confiner) Status() Status { return c.status() }

// SelfTest is Status as an error: nil when commands are confined.
func (c *Confiner) SelfTest() error { return c.Status().failure() }

// failure says what could not be shown to hold, nil when all did.
func (s Status) failure() error {
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

func (c *Confiner) selfTest() Status {
	s := Status{Tier: Threads, LandlockABI: c.kernel.Landlock, Broker: c.kernel.Broker, Injected: c.kernel.Broker && !c.kernel.GetFD}
	canary, cleanup := canaryFile(c.policy)
	defer cleanup()
	// What commands get for a datagram socket is none, but they do get it.
	family, forbidden := unix.AF_INET, "a UDP socket"
	if c.lookups != nil {
		family, forbidden = unix.AF_UNIX, "a Unix datagram socket of the machine's"
	}
	free, err := probeOutside(canary, family)
	if err != nil {
		return s.unproven(err)
	}
	caged, err := c.probeInside(canary, family)
	if err != nil {
		return s.unproven(err)
	}
	s.Seccomp = caged.mode == unix.SECCOMP_MODE_FILTER
	s.Files = verdict("read "+canary, free.read, caged.read)
	s.Network = verdict("open "+forbidden, free.socket, caged.socket)
	if c.policy.Network {
		s.Network = Check{Proven: true, Detail: "open by --network allow"}
	}
	s.Signals = verdict("signal the server", free.signal, caged.signal)
	s.Kill = c.killVerdict(s.Signals)
	return s
}

func (s Status) unproven(err error) Status {
	c := Check{Detail: "the self-test could not run: " + err.Error()}
	s.Files, s.Network, s.Signals, s.Kill, s.err = c, c, c, c, err
	return s
}

func verdict(what string, free, caged unix.Errno) Check {
	switch {
	case free != 0:
		return Check{Detail: fmt.Sprintf("could not try to %s: even outside it fails (%v)", what, free)}
	case caged == 0:
		return Check{Detail: fmt.Sprintf("a confined process could %s", what)}
	}
	return Check{Proven: true, Detail: fmt.Sprintf("a confined process tried to %s: %v", what, caged)}
}

func (c *Confiner) killVerdict(signals Check) Check {
	switch {
	case c.kernel.scoped() && signals.Proven:
		return Check{Proven: true, Detail: "landlock scope"}
	case c.kernel.scoped():
		return Check{Detail: "the landlock scope did not hold: " + signals.Detail}
	}
	return Check{Detail: fmt.Sprintf("landlock abi %d does not scope signals (6 does): processes are found by descent, "+
		"and one that detaches while another command runs is ended with the session only", c.kernel.Landlock)}
}

// canaryFile returns a readable file that the policy does not allow.
func canaryFile(p policy.Policy) (name string, cleanup func()) {
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

// probes are the results of the forbidden calls.
type probes struct {
	read, socket, signal unix.Errno
	beyond               unix.Errno // of a connection past the gateway
	mode                 int        // seccomp's
}

// A probeRun is the program of the process that makes them.
type probeRun struct {
	calls [4]call
	path  [unix.PathMax]byte
	pin   runtime.Pinner
}

func newProbe(canary string, target, family int) *probeRun {
	r := new(probeRun)
	r.pin.Pin(r)
	copy(r.path[:len(r.path)-1], canary)
	cwd, kind := unix.AT_FDCWD, unix.SOCK_DGRAM
	if family == unix.AF_UNIX {
		kind = unix.SOCK_RAW // which the kernel takes for that
	}
	r.calls = [4]call{
		{nr: unix.SYS_OPENAT, args: [6]uintptr{uintptr(cwd), uintptr(unsafe.Pointer(&r.path[0])), unix.O_RDONLY | unix.O_CLOEXEC}},
		{nr: unix.SYS_SOCKET, args: [6]uintptr{uintptr(family), uintptr(kind | unix.SOCK_CLOEXEC), 0}},
		{nr: unix.SYS_KILL, args: [6]uintptr{uintptr(target), 0}},
		{nr: unix.SYS_PRCTL, args: [6]uintptr{unix.PR_GET_SECCOMP}},
	}
	for i := range r.calls[:3] {
		r.calls[i].then(&r.calls[i+1])
	}
	return r
}

// run makes the calls in a child of the calling thread.
func (r *probeRun) run() (probes, error) {
	defer r.pin.Unpin()
	pid, err := spawn(unix.CLONE_VM, &r.calls[0])
	if err != nil {
		return probes{}, err
	}
	reapClone(pid)
	return probes{read: r.calls[0].errno(), socket: r.calls[1].errno(), signal: r.calls[2].errno(),
		mode: int(r.calls[3].ret)}, nil
}

func probeOutside(canary string, family int) (probes, error) {
	return newProbe(canary, os.Getpid(), family).run()
}

func (c *Confiner) probeInside(canary string, family int) (p probes, err error) {
	d, err := c.newDomain()
	if err != nil {
		return p, err
	}
	ran := make(chan struct{})
	d.job <- func() {
		defer close(ran)
		p, err = newProbe(canary, os.Getpid(), family).run()
	}
	<-ran
	if d.broker == nil {
		d.finish()
	}
	return p, err
}
