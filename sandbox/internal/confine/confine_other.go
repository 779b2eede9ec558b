//go:build !(linux && (amd64 || arm64))

package confine

import (
	"errors"
	"net"
	"syscall"
)

// ErrUnavailable says that commands cannot be confined on this system.
var ErrUnavailable = errors.New("commands cannot be confined on this system: only Linux on amd64 and arm64 can do it")

// Own does nothing here.
func Own(net.Addr) (forget func()) { return func() {} }

// Harden does nothing here.
func Harden() error { return nil }

// A Confiner does not exist here: New always fails.
type Confiner struct{}

// New fails with ErrUnavailable.
func New(Policy, Options) (*Confiner, error) { return nil, ErrUnavailable }

// Start fails with ErrUnavailable.
func (*Confiner) Start(func() (int, error)) (*Domain, error) { return nil, ErrUnavailable }

// Status claims nothing.
func (*Confiner) Status() Status { return Status{} }

// SelfTest fails with ErrUnavailable.
func (*Confiner) SelfTest() error { return ErrUnavailable }

// Close does nothing.
func (*Confiner) Close() error { return nil }

// A Domain does not exist here.
type Domain struct{}

// Kill fails with ErrUnavailable.
func (*Domain) Kill() error { return ErrUnavailable }

// Signal fails with ErrUnavailable.
func (*Domain) Signal(syscall.Signal) error { return ErrUnavailable }

// Alive is false.
func (*Domain) Alive() bool { return false }

// Done returns a closed channel.
func (*Domain) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// Refusals returns nothing.
func (*Domain) Refusals() []Refusal { return nil }

// Stage returns at once.
func Stage() {}

// Isolation is what an Isolator would be made from.
type Isolation struct {
	Policy    Policy
	Workspace string
	Files     map[string]string
	Guard     bool
}

// An Isolator does not exist here: NewIsolator always fails.
type Isolator struct{}

// NewIsolator fails with ErrUnavailable.
func NewIsolator(Isolation) (*Isolator, error) { return nil, ErrUnavailable }

// Status claims nothing.
func (*Isolator) Status() Status { return Status{} }

// SelfTest fails with ErrUnavailable.
func (*Isolator) SelfTest() error { return ErrUnavailable }

// Close does nothing.
func (*Isolator) Close() error { return nil }
