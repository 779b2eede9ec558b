//go:build amd64 || arm64

package broker

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
