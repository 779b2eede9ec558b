//go:build amd64 || arm64

package confine

// seats are for questions that are worked on, each of which may block a thread for
// as long as commands like. A session takes few of those for all, and has one that
// no other session takes. Who finds none waits, which takes no thread.
type seats struct {
	mine chan struct{} // all that the session has
	last chan struct{}
}

// commonSeats are for all sessions.
var commonSeats = make(chan struct{}, 24)

// sessionSeats is how many one session may have.
const sessionSeats = 8

func newSeats() seats {
	return seats{mine: make(chan struct{}, sessionSeats), last: make(chan struct{}, 1)}
}

// take waits for a seat; leave gives it back.
func (s seats) take() (leave func()) {
	s.mine <- struct{}{}
	from := commonSeats
	select {
	case commonSeats <- struct{}{}:
	case s.last <- struct{}{}:
		from = s.last
	}
	return func() { <-from; <-s.mine }
}
