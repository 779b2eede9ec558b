//go:build amd64 || arm64

package confine

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// A session is what the brokers of one session's commands share: what is allowed, and
// what its commands have made.
type session struct {
	policy   policy.Policy
	kernel   features
	writes   []string // the writable roots, links resolved
	ports    listeners
	names    abstractNames
	sockets  socketLocks
	ipc      ipcObjects
	seats    seats
	gate     gate          // nil for none
	lookups  *lookups      // what commands get for UDP sockets; nil where the network is open
	waits    chan struct{} // the connects that wait for the other side
	pending  chan struct{} // those that no command waits for
	receives chan struct{} // the receives of datagrams that wait
	given    givenTerminals
	nowhere  atomic.Bool  // some socket waits for its port, see bindNowhere
	held     atomic.Int32 // the listening sockets that the broker holds too

	// watchers are those of the session's commands, with started only of those that
	// have been started. There are none where signals are not scoped.
	watchers func(started bool) []domainWatcher
}

// A domainWatcher reaches the processes of one command, and no others: not what holds the
// commands, as the server and its threads.
type domainWatcher interface {
	// signal sends a signal to one process or one group of the command. EPERM is for those
	// that are not among its processes.
	signal(pid int, sig unix.Signal) (unix.Errno, error)
	// has reports whether a task (a process or thread) is the command's.
	has(task int) bool
}

func newSession(p policy.Policy, has features, watchers func(started bool) []domainWatcher) *session {
	return &session{policy: p, kernel: has, writes: p.Written(), watchers: watchers,
		seats: newSeats(), waits: make(chan struct{}, waitingConnects), pending: make(chan struct{}, pendingConnects),
		receives: make(chan struct{}, waitingReceives)}
}

// serveDatagrams has the commands get sockets for names and for each other where they ask
// for UDP sockets. The gate is nil for none.
func (s *session) serveDatagrams(g gate) {
	if v, ok := g.(*network.Gate); !ok || v != nil {
		s.gate = g
	}
	s.lookups = newLookups(s.gate, s.seats)
}

// close gives back what the commands have made. None of them is left.
func (s *session) close() {
	if s.lookups != nil {
		s.lookups.close()
	}
	s.ipc.close()
}
