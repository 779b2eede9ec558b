//go:build !(linux && (amd64 || arm64))

package confine

import (
	"errors"
	"net"
	"net/netip"
)

// ErrUnavailable says that commands cannot be confined on this system.
var ErrUnavailable = errors.New("commands cannot be confined on this system: only Linux on amd64 and arm64 can do it")

// New fails with ErrUnavailable.
func New(Tier, Isolation) (Jail, error) { return nil, ErrUnavailable }

// A GuardError does not come up here.
type GuardError struct{ Text string }

func (e *GuardError) Error() string { return e.Text }

// Begun is nothing here.
type Begun struct{}

// Close and Await do nothing.
func (*Begun) Close() {}
func (*Begun) Await() {}

// Begin is nil.
func Begin(Tier, bool) *Begun { return nil }

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
