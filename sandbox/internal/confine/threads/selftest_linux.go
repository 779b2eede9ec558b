//go:build amd64 || arm64

package threads

import (
	"fmt"
	"os"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/selftest"
	"golang.org/x/sys/unix"
)

// Status tries out what the sandbox promises, once: a process outside makes the
// forbidden calls and must succeed, a confined one makes them and must fail.
func (c *Confiner) Status() selftest.Status { return c.status() }

// SelfTest is Status as an error: nil when commands are confined.
func (c *Confiner) SelfTest() error { return c.Status().Failure() }

func (c *Confiner) selfTest() selftest.Status {
	s := selftest.Status{Tier: selftest.Threads, LandlockABI: c.Kernel.Landlock, Broker: c.Kernel.Broker, Injected: c.Kernel.Broker && !c.Kernel.GetFD}
	canary, cleanup := selftest.Canary(c.Policy)
	defer cleanup()
	// What commands get for a datagram socket is none, but they do get it.
	family, forbidden := unix.AF_INET, "a UDP socket"
	if c.Datagrams != nil {
		family, forbidden = unix.AF_UNIX, "a Unix datagram socket of the machine's"
	}
	c.Spares.begin() // for the first command
	free, err := selftest.Outside(canary, family)
	if err != nil {
		return s.Unproven(err)
	}
	caged, err := c.probeInside(canary, family)
	if err != nil {
		return s.Unproven(err)
	}
	s.Seccomp = caged.Mode == unix.SECCOMP_MODE_FILTER
	s.Files = selftest.Verdict("read "+canary, free.Read, caged.Read)
	s.Network = selftest.Verdict("open "+forbidden, free.Socket, caged.Socket)
	if c.Policy.Network {
		s.Network = selftest.Check{Proven: true, Detail: "open by --network allow"}
	}
	s.Signals = selftest.Verdict("signal the server", free.Signal, caged.Signal)
	s.Kill = c.killVerdict(s.Signals)
	return s
}

func (c *Confiner) killVerdict(signals selftest.Check) selftest.Check {
	switch {
	case c.Kernel.Scoped() && signals.Proven:
		return selftest.Check{Proven: true, Detail: "landlock scope"}
	case c.Kernel.Scoped():
		return selftest.Check{Detail: "the landlock scope did not hold: " + signals.Detail}
	}
	return selftest.Check{Detail: fmt.Sprintf("landlock abi %d does not scope signals (6 does): processes are found by descent, "+
		"and one that detaches while another command runs is ended with the session only", c.Kernel.Landlock)}
}

func (c *Confiner) probeInside(canary string, family int) (p selftest.Results, err error) {
	d, err := c.newDomain()
	if err != nil {
		return p, err
	}
	ran := make(chan struct{})
	d.job <- func() {
		defer close(ran)
		p, err = selftest.NewProbe(canary, os.Getpid(), family).Run()
	}
	<-ran
	if d.broker == nil {
		d.finish()
	}
	return p, err
}
