//go:build amd64 || arm64

package threads

import (
	"sync"
	"time"
)

// Spares are domains made ahead of time. Making starts with the first take, so
// a server that runs no command pays nothing.
type Spares struct {
	make func() (*Domain, error)
	want int

	mu     sync.Mutex
	ready  []*Domain
	busy   bool // a goroutine is refilling
	closed bool
	idle   *time.Timer // since the last take
	Keep   time.Duration
}

// keepSpares is for how long an idle session keeps its spares, which are threads,
// processes and descriptors.
const keepSpares = 10 * time.Second

func newSpares(want int, make func() (*Domain, error)) *Spares {
	if want == 0 {
		want = 2
	}
	return &Spares{make: make, want: want, Keep: keepSpares}
}

// take returns a spare domain, or a fresh one when there is none.
func (s *Spares) take() (*Domain, error) {
	s.mu.Lock()
	var d *Domain
	if n := len(s.ready); n > 0 {
		d, s.ready = s.ready[n-1], s.ready[:n-1]
	}
	s.mu.Unlock()
	if d != nil {
		return d, nil
	}
	return s.make()
}

// begin makes one at once, beside what has to be shown before a command runs.
func (s *Spares) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || s.closed {
		return
	}
	s.busy = true
	go func() {
		if s.add(s.make()) {
			time.AfterFunc(RefillDelay, s.fill)
		}
	}()
}

// RefillDelay lets a command that just started have the processor first.
const RefillDelay = 5 * time.Millisecond

// refill makes spares up to the wanted number, in the background and soon.
func (s *Spares) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.busy && !s.closed && len(s.ready) < s.want {
		s.busy = true
		time.AfterFunc(RefillDelay, s.fill)
	}
}

func (s *Spares) fill() {
	for more := true; more; {
		d, err := s.make()
		more = s.add(d, err)
	}
}

// add stores a new spare and reports whether another is wanted. After a failure
// none is: the next take meets the reason itself.
func (s *Spares) add(d *Domain, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
	case s.closed:
		d.discard()
	default:
		s.ready = append(s.ready, d)
		s.awaitIdle()
	}
	s.busy = err == nil && !s.closed && len(s.ready) < s.want
	return s.busy
}

// awaitIdle has the spares given up when none has been made for a while; one is
// made after each that is taken.
func (s *Spares) awaitIdle() {
	if s.idle == nil {
		s.idle = time.AfterFunc(s.Keep, func() { s.giveUp(false) })
		return
	}
	s.idle.Reset(s.Keep)
}

func (s *Spares) close() { s.giveUp(true) }

func (s *Spares) giveUp(forGood bool) {
	s.mu.Lock()
	s.closed = s.closed || forGood
	ready := s.ready
	s.ready = nil
	s.mu.Unlock()
	for _, d := range ready {
		d.discard()
	}
}
