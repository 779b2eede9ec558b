//go:build amd64 || arm64

package broker

import (
	"net/netip"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
	"golang.org/x/sys/unix"
)

// TestSessionsShareTheBudget: whatever others have taken, a session has a few sockets for
// names, and all together have no more than their share of the descriptors.
func TestSessionsShareTheBudget(t *testing.T) {
	b := &Budget{most: 4 * MaxLookups}
	var greedy []*Lookups
	for range 10 {
		ls := &Lookups{Budget: b}
		for ls.take() {
		}
		greedy = append(greedy, ls)
	}
	if b.used > b.most || greedy[0].Held != MaxLookups || greedy[9].Held != fewLookups {
		t.Errorf("%d of %d are used, the first has %d, the last %d", b.used, b.most, greedy[0].Held, greedy[9].Held)
	}
	greedy[0].give()
	if greedy[0].take() {
		t.Error("one that has many gets one of the last")
	}
	for _, ls := range greedy {
		for ls.Held > 0 {
			ls.give()
		}
	}
	if b.used != 0 {
		t.Errorf("%d are used by nobody", b.used)
	}
	if most := lookupBudget().most; most > maxAllLook || most < fewLookups {
		t.Errorf("the process has %d", most)
	}
}

// TestConnectsHoldNoSeats: a connect waits until what was sent before is read, for which
// the session needs a seat.
func TestConnectsHoldNoSeats(t *testing.T) {
	ls := newLookups(nil, NewSeats())
	theirs, l, e := ls.open(unix.SOCK_SEQPACKET, unix.AF_INET, InetAddress(unix.AF_INET, netip.MustParseAddrPort("127.0.0.53:53")))
	filetest.Must(t, e)
	ls.take()
	defer unix.Close(theirs)
	for range cap(ls.busy) {
		ls.busy <- struct{}{}
	}
	for range 2 {
		_, err := unix.Write(theirs, []byte("question"))
		filetest.Must(t, err)
	}
	q := &Question{broker: &Broker{session: &Session{Seats: ls.seats}}}
	q.sit()
	rested := false
	l.connect(nil, netip.AddrPort{}, func(wait func()) {
		q.rest(func() { rested = rested || len(ls.seats.Mine) == 0; wait() })
	})
	q.leave()
	if !rested {
		t.Error("it waits with a seat")
	}
	for range cap(ls.busy) {
		<-ls.busy
	}
}

// TestOtherSessionsGetAnswers: when sessions have had all the memory taken that there is
// for datagrams, the others get their answers.
func TestOtherSessionsGetAnswers(t *testing.T) {
	ls := newLookups(nil, NewSeats())
	ls.take()
	theirs, other, err := ls.open(unix.SOCK_SEQPACKET, unix.AF_INET, nil)
	filetest.Must(t, err)
	defer func() {
		unix.Close(theirs)
		eventuallyHolds(t, "the socket is kept", ls.None)
	}()
	if !other.deliver(datagram{data: []byte("x")}) {
		t.Fatal("there is no room")
	}
	eventuallyHolds(t, "the first is not handed over", other.isEmpty) // so that what follows is queued
	allQueued.Add(maxAllQueued)
	defer allQueued.Add(-maxAllQueued)
	if other.deliver(datagram{data: make([]byte, maxDatagram+1)}) {
		t.Error("there is room for any: nothing is proven")
	}
	if !other.deliver(datagram{data: make([]byte, maxDatagram)}) {
		t.Error("an answer is lost")
	}
	if other.deliver(datagram{data: []byte("x")}) {
		t.Error("there is room for a second")
	}
}

func (l *lookup) isEmpty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) == 0
}

// eventuallyHolds waits for a condition, with a bound for a hang only.
func eventuallyHolds(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatal(what)
}
