//go:build amd64 || arm64

package broker

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/datagrams"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/listeners"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// A Session is what the brokers of one session's commands share: what is allowed, and
// what its commands have made.
type Session struct {
	Policy    policy.Policy
	Kernel    kernel.Features
	writes    []string // the writable roots, links resolved
	shared    string   // that of them which is every user's
	free      []string // those in which everything can be made
	ports     listeners.TCP
	names     listeners.Names
	Sockets   socketLocks
	ipc       ipcObjects
	Seats     Seats
	gate      Gate               // nil for none
	Datagrams *datagrams.Sockets // what commands get for UDP sockets; nil where the network is open
	Waits     chan struct{}      // the connects that wait for the other side
	pending   chan struct{}      // those that no command waits for
	Receives  chan struct{}      // the receives of datagrams that wait
	Given     givenTerminals
	nowhere   atomic.Bool // some socket waits for its port, see bindNowhere

	// watchers are those of the session's commands, with started only of those that
	// have been started. There are none where signals are not scoped.
	watchers func(started bool) []Watcher
}

// A Watcher reaches the processes of one command, and no others: not what holds the
// commands, as the server and its threads.
type Watcher interface {
	// Signal sends a signal to one process or one group of the command. EPERM is for those
	// that are not among its processes.
	Signal(pid int, sig unix.Signal) (unix.Errno, error)
	// Has reports whether a task (a process or thread) is the command's.
	Has(task int) bool
}

// NewSession makes one. See [Session] for the watchers.
func NewSession(p policy.Policy, has kernel.Features, watchers func(started bool) []Watcher) *Session {
	return &Session{Policy: p, Kernel: has, writes: p.Written(), shared: p.Shared(), free: p.Free(), watchers: watchers,
		Seats: NewSeats(), Waits: make(chan struct{}, WaitingConnects), pending: make(chan struct{}, pendingConnects),
		Receives: make(chan struct{}, WaitingReceives)}
}

// ServeDatagrams has the commands get sockets for names and for each other where they ask
// for UDP sockets. The gate is nil for none.
func (s *Session) ServeDatagrams(g Gate) {
	var names datagrams.Names
	if v, ok := g.(*network.Gate); !ok || v != nil {
		s.gate, names = g, g
	}
	s.Datagrams = datagrams.New(names, s.Seats.Take)
}

// Close gives back what the commands have made. None of them is left.
func (s *Session) Close() {
	if s.Datagrams != nil {
		s.Datagrams.Close()
	}
	s.ipc.close()
}

// Seats are for questions that are worked on, each of which may block a thread for
// as long as commands like. A session takes few of those for all, and has one that
// no other session takes. Who finds none waits, which takes no thread.
type Seats struct {
	Mine chan struct{} // all that the session has
	last chan struct{}
}

// CommonSeats are for all sessions.
var CommonSeats = make(chan struct{}, 24)

// SessionSeats is how many one session may have.
const SessionSeats = 8

// NewSeats are those of a new session.
func NewSeats() Seats {
	return Seats{Mine: make(chan struct{}, SessionSeats), last: make(chan struct{}, 1)}
}

// Take waits for a seat; leave gives it back.
func (s Seats) Take() (leave func()) {
	s.Mine <- struct{}{}
	from := CommonSeats
	select {
	case CommonSeats <- struct{}{}:
	case s.last <- struct{}{}:
		from = s.last
	}
	return func() { <-from; <-s.Mine }
}
