//go:build !(linux && (amd64 || arm64))

package confine

import (
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
)

// ErrUnavailable says that commands cannot be confined on this system.
var ErrUnavailable = errors.New("commands cannot be confined on this system: only Linux on amd64 and arm64 can do it")

// Foreseen is ErrUnavailable.
func Foreseen() error { return ErrUnavailable }

// Offered is false.
func Offered() bool { return false }

// SocketsBelow finds none here.
func SocketsBelow([]string) []string { return nil }

// WithoutSetID changes nothing here.
func WithoutSetID(start func() (pid int, err error)) func() (pid int, err error) { return start }

// Own does nothing here.
func Own(net.Addr) (forget func()) { return func() {} }

// Owns is false.
func Owns(netip.AddrPort) bool { return false }

// Harden does nothing here.
func Harden() error { return nil }

// A Confiner does not exist here: New always fails.
type Confiner struct{}

// New fails with ErrUnavailable.
func New(policy.Policy, Options) (*Confiner, error) { return nil, ErrUnavailable }

// Start fails with ErrUnavailable.
func (*Confiner) Start(func() (int, error)) (*Domain, error) { return nil, ErrUnavailable }

// OpenTerminal fails with ErrUnavailable.
func (*Confiner) OpenTerminal() (*pty.Pair, error) { return nil, ErrUnavailable }

// Fallen is false.
func (*Confiner) Fallen() bool { return false }

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
func (*Domain) Refusals() []hints.Refusal { return nil }

// Isolation is what an Isolator would be made from.
type Isolation struct {
	Policy    policy.Policy
	Workspace string
	Files     map[string]string
	Guard     bool
	Gate      *network.Gate
	MaxMemory int64
}

// An Isolator does not exist here: NewIsolator always fails.
type Isolator struct{}

// NewIsolator fails with ErrUnavailable.
func NewIsolator(Isolation) (*Isolator, error) { return nil, ErrUnavailable }

// OpenTerminal fails with ErrUnavailable.
func (*Isolator) OpenTerminal() (*pty.Pair, error) { return nil, ErrUnavailable }

// Fallen is false.
func (*Isolator) Fallen() bool { return false }

// Status claims nothing.
func (*Isolator) Status() Status { return Status{} }

// SelfTest fails with ErrUnavailable.
func (*Isolator) SelfTest() error { return ErrUnavailable }

// Close does nothing.
func (*Isolator) Close() error { return nil }

// A Reserve does not exist here.
type Reserve struct{}

// NewReserve fails.
func NewReserve(int64) (*Reserve, error) { return nil, ErrUnavailable }

// Held is false.
func (*Reserve) Held() bool { return false }

// Close does nothing.
func (*Reserve) Close() {}

// Memory is not limited here.
func Memory() (limit, used int64) { return 0, 0 }
