//go:build amd64 || arm64

package datagrams

import (
	"net/netip"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
	"golang.org/x/sys/unix"
)

// TestSessionsShareTheBudget: whatever others have taken, a session has a few sockets for
// names, and all together have no more than their share of the descriptors.
func TestSessionsShareTheBudget(t *testing.T) {
	b := &allowance{most: 4 * MaxSockets}
	var greedy []*Sockets
	for range 10 {
		ls := &Sockets{budget: b}
		for ls.Take() {
		}
		greedy = append(greedy, ls)
	}
	if b.used > b.most || greedy[0].held != MaxSockets || greedy[9].held != fewSockets {
		t.Errorf("%d of %d are used, the first has %d, the last %d", b.used, b.most, greedy[0].held, greedy[9].held)
	}
	greedy[0].Give()
	if greedy[0].Take() {
		t.Error("one that has many gets one of the last")
	}
	for _, ls := range greedy {
		for ls.held > 0 {
			ls.Give()
		}
	}
	if b.used != 0 {
		t.Errorf("%d are used by nobody", b.used)
	}
	if most := sharedAllowance().most; most > maxAllSockets || most < fewSockets {
		t.Errorf("the process has %d", most)
	}
}

// TestConnectsHoldNoSeats: a connect waits until what was sent before is read, for which
// the session needs a seat.
func TestConnectsHoldNoSeats(t *testing.T) {
	testlevel.NotQuick(t, "waits for what does not come")
	seats := make(chan struct{}, 1)
	take := func() (leave func()) {
		seats <- struct{}{}
		return func() { <-seats }
	}
	ls := New(nil, take)
	theirs, l, e := ls.Open(unix.SOCK_SEQPACKET, unix.AF_INET, kernel.InetAddress(unix.AF_INET, netip.MustParseAddrPort("127.0.0.53:53")))
	filetest.Must(t, e)
	ls.Take()
	defer unix.Close(theirs)
	for range cap(ls.busy) {
		ls.busy <- struct{}{}
	}
	for range 2 {
		_, err := unix.Write(theirs, []byte("question"))
		filetest.Must(t, err)
	}
	leave := take()
	rested := false
	l.Connect(nil, netip.AddrPort{}, func(wait func()) {
		leave()
		rested = true
		wait()
		leave = take()
	})
	leave()
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
	ls := New(nil, noSeats)
	ls.Take()
	theirs, other, err := ls.Open(unix.SOCK_SEQPACKET, unix.AF_INET, nil)
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

// noSeats never waits.
func noSeats() (leave func()) { return func() {} }

func (l *Socket) isEmpty() bool {
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
