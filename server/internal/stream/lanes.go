package stream

// Lanes put calls that change the same state into the order in which they
// arrived. The zero value is ready. It is used by the reader alone.
type lanes map[string]chan struct{}

// A turn is one call's place in its lane.
type turn struct {
	before <-chan struct{} // closed when the call ahead is done, nil when there is none
	done   chan struct{}
}

// join takes the next place in a lane; a call without a lane ("") has its turn
// at once.
func (l lanes) join(lane string) turn {
	if lane == "" {
		return turn{}
	}
	t := turn{before: l[lane], done: make(chan struct{})}
	l[lane] = t.done
	return t
}

// wait blocks until it is this call's turn. A cancelled call waits as well: its
// place is what keeps the calls behind it in order.
func (t turn) wait() {
	if t.before != nil {
		<-t.before
	}
}

func (t turn) finish() {
	if t.done != nil {
		close(t.done)
	}
}
