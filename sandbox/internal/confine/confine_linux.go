//go:build amd64 || arm64

package confine

import (
	"net"
	"net/netip"
	"syscall"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/listeners"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/seccomp"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
)

// makers make a Jail, for each tier.
var makers = map[Tier]func(Isolation) (Jail, error){
	Threads: func(in Isolation) (Jail, error) {
		c, err := threads.New(in.Policy, threads.Options{Gate: in.Gate})
		if err != nil {
			return nil, err
		}
		return onThreads{c}, nil
	},
	Namespaces: func(in Isolation) (Jail, error) {
		i, err := namespaces.New(namespaces.Isolation{Policy: in.Policy, Workspace: in.Workspace, Guard: in.Guard,
			Files: in.Files, Gate: in.Gate, MaxMemory: in.MaxMemory, Begun: in.Begun})
		if err != nil {
			return nil, err
		}
		return inNamespaces{i}, nil
	},
}

// New makes a Jail of a tier. It fails where the system does not offer or permit what
// that takes; what else is missing is in its Status.
func New(t Tier, in Isolation) (Jail, error) { return makers[t](in) }

// A GuardError says what keeps the workspace from being guarded: see [namespaces.GuardError].
type GuardError = namespaces.GuardError

// Begun is what can be made of a Jail before it is known what commands may reach.
type Begun = namespaces.Begun

// Begin begins to make a Jail of a tier, whose commands have the machine's network or not:
// nil where the caller has nothing to hand on. It returns at once. The caller closes what it
// returns, also when a Jail was made of it.
func Begin(t Tier, network bool) *Begun {
	if t != Namespaces {
		threads.Begin()
		return nil
	}
	return namespaces.Begin(network)
}

// onThreads is the Jail whose commands inherit what confines the threads that start them.
type onThreads struct{ *threads.Confiner }

func (j onThreads) Start(p Program) (Running, error) {
	d, err := j.Confiner.Start(p.Begin)
	if err != nil {
		return nil, err
	}
	return inDomain{d}, nil
}

func (onThreads) Space() Space { return nil }

// inDomain is one of its commands.
type inDomain struct{ *threads.Domain }

func (inDomain) Result() (status syscall.WaitStatus, known bool) { return 0, false }

// inNamespaces is the Jail whose commands see nothing but what they may reach.
type inNamespaces struct{ *namespaces.Isolator }

func (j inNamespaces) Start(p Program) (Running, error) {
	own := namespaces.Program{Path: p.Path, Argv: p.Argv, Env: p.Env, Dir: p.Dir, Terminal: p.Terminal, Cancel: p.Cancel, Bounds: p.Bounds}
	for i, f := range p.Files {
		own.Files[i] = f.Fd()
	}
	c, err := j.Isolator.Start(own)
	if err != nil {
		return nil, err
	}
	return inCell{c}, nil
}

func (j inNamespaces) Space() Space { return j.Isolator }

// inCell is one of its commands.
type inCell struct{ *namespaces.Cell }

func (c inCell) Result() (status syscall.WaitStatus, known bool) { return c.Wait(), true }

// Populated is Alive, which is exact here.
func (c inCell) Populated() bool { return c.Alive() }

// Refusals are on nobody's record here: what may not be reached does not exist.
func (inCell) Refusals() []hints.Refusal { return nil }

// Foreseen tells why commands can certainly not be confined on this system, nil
// where it must be tried.
func Foreseen() error { return nil }

// Offered reports whether the kernel says that it has Landlock, which is asked
// without trying anything. Where it says no, namespaces may still confine commands.
func Offered() bool { return kernel.LandlockABI() > 0 }

// Harden is for the first lines of a server's main: see [kernel.Harden].
func Harden() error { return kernel.Harden() }

// Own keeps commands from connecting to a listener of this program: see [broker.Own].
func Own(listener net.Addr) (forget func()) { return listeners.Own(listener) }

// Owns reports whether a listener of this program has an address: see [broker.Owns].
func Owns(at netip.AddrPort) bool { return listeners.Owns(at) }

// SocketsBelow finds the Unix sockets of the machine below places: see [namespaces.SocketsBelow].
func SocketsBelow(places []string) []string { return namespaces.SocketsBelow(places) }

// WithoutSetID is start for a process that cannot make files with the set-id bits: see
// [seccomp.WithoutSetID].
func WithoutSetID(start func() (pid int, err error)) func() (pid int, err error) {
	return seccomp.WithoutSetID(start)
}

// A Reserve is memory that is held for this program: see [namespaces.Reserve].
type Reserve = namespaces.Reserve

// NewReserve holds memory.
func NewReserve(bytes int64) (*Reserve, error) { return namespaces.NewReserve(bytes) }

// Memory tells how much memory control groups let this program and its commands have, and
// how much of that cannot be had back: see [namespaces.Memory].
func Memory() (limit, used int64) { return namespaces.Memory() }

// FilledByFiles reports whether files in memory leave less than room of that: see
// [namespaces.FilledByFiles].
func FilledByFiles(room int64) bool { return namespaces.FilledByFiles(room) }
