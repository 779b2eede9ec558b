//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Status tries out what the sandbox promises, once: a process outside makes the
// forbidden calls and must succeed, a confined one makes them and must fail.
func (c *Confiner) Status() Status { return c.status() }

// SelfTest is Status as an error: nil when commands are confined.
func (c *Confiner) SelfTest() error { return c.Status().failure() }

func (c *Confiner) selfTest() Status {
	s := Status{Tier: Threads, LandlockABI: c.kernel.Landlock, Broker: c.kernel.Broker, Injected: c.kernel.Broker && !c.kernel.GetFD}
	canary, cleanup := canaryFile(c.policy)
	defer cleanup()
	// What commands get for a UDP socket is none, but they do get it.
	family, forbidden := unix.AF_INET, "a UDP socket"
	if c.lookups != nil {
		family, forbidden = unix.AF_UNIX, "a Unix datagram socket"
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
