//go:build amd64 || arm64

package broker

import "testing"

// TestRestingHoldsNoSeat: what a question waits for may need the seat that it has.
func TestRestingHoldsNoSeat(t *testing.T) {
	s := NewSeats()
	q := &Question{broker: &Broker{session: &Session{Seats: s}}}
	q.sit()
	if len(s.Mine) != 1 {
		t.Fatalf("a question that is worked on has %d seats", len(s.Mine))
	}
	q.rest(func() {
		if len(s.Mine) != 0 {
			t.Errorf("one that rests has %d", len(s.Mine))
		}
	})
	if len(s.Mine) != 1 {
		t.Errorf("afterwards it has %d", len(s.Mine))
	}
	q.leave()
	if len(s.Mine) != 0 {
		t.Errorf("at its end it has %d", len(s.Mine))
	}
}
