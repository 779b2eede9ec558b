//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	probeTable["udp-wait"] = escape{try: waitMany}
	probeTable["udp-pieces"] = escape{try: receiveInPieces}
}

// waiters are more than can wait at once.
const waiters = 2 * waitingReceives

// waitMany has more threads wait in a receive than can, and then sends to each. None may
// find that its socket does not block.
func waitMany() error {
	send, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	const sockets = waiters / 4
	var all sync.WaitGroup
	errs := make([]error, waiters)
	var to []unix.Sockaddr
	for i := range sockets {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
		}
		if err != nil {
			return err
		}
		at, err := unix.Getsockname(s)
		if err != nil {
			return err
		}
		for j := range waiters / sockets {
			to = append(to, at)
			all.Go(func() {
				errs[i*waiters/sockets+j] = ignoringEINTR(func() error { _, _, err := unix.Recvfrom(s, make([]byte, 9), 0); return err })
			})
		}
	}
	if err := os.WriteFile("up", nil, 0o600); err != nil {
		return err
	}
	if !await("stop") {
		return errors.New("nobody stops it")
	}
	for _, at := range to {
		if err := unix.Sendto(send, []byte("x"), 0, at); err != nil {
			return err
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// TestReceivesThatWait: however many threads of a command wait for datagrams, the server
// has few descriptors for that, and each gets its own.
func TestReceivesThatWait(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	descriptors := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(all)
	}
	for name, without := range map[string]missing{"threads": {}, "threads, no duplicates": {getFD: true}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			c := confiner(t, p.policy(), without)
			before := descriptors()
			done := make(chan result, 1)
			go func() { done <- p.do(t, c, []string{probeVar + "=udp-wait"}, exe) }()
			eventually(t, "too few wait: nothing is proven", func() bool { return len(c.receives) == waitingReceives })
			sockets, each := c.lookups.count(), 1
			if without.getFD {
				each = 2
			}
			eventually(t, "waiting takes descriptors", func() bool { return descriptors() < before+each*sockets+waitingReceives })
			must(t, os.WriteFile(p.ws+"/stop", nil, 0o600))
			if r := <-done; r.err != nil {
				t.Error(r.err, r.out)
			}
		})
	}
	p := newPlace(t)
	must(t, os.WriteFile(p.ws+"/stop", nil, 0o600))
	if r := p.do(t, nil, []string{probeVar + "=udp-wait"}, exe); r.err != nil {
		t.Error("outside:", r.err, r.out)
	}
}

// receiveInPieces receives into as many pieces as there can be, in memory of very many
// parts, and where nothing may be written; and looks for errors, of which there are none.
func receiveInPieces() error {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	at := netip.MustParseAddrPort(conn.LocalAddr().String())
	raw, err := conn.File()
	if err != nil {
		return err
	}
	s := int(raw.Fd())
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 20000*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	for i := 0; i < len(memory); i += 2 * page {
		if err := unix.Mprotect(memory[i:i+page], unix.PROT_READ); err != nil {
			return err
		}
	}
	text := strings.Repeat("0123456789", maxPieces/10)
	iovs := make([]unix.Iovec, maxPieces)
	for i := range iovs { // one byte each, from the last part to the first
		iovs[i].Base = &memory[len(memory)-2*page*(i+1)+page+i]
		iovs[i].SetLen(1)
	}
	name := make([]byte, unix.SizeofSockaddrInet4)
	m := unix.Msghdr{Name: &name[0], Namelen: uint32(len(name)), Iov: &iovs[0], Iovlen: maxPieces, Flags: -1}
	ask := func(flags uintptr) (uintptr, unix.Errno) {
		n, _, e := unix.Syscall(unix.SYS_RECVMSG, uintptr(s), uintptr(unsafe.Pointer(&m)), flags)
		return n, e
	}
	if _, err := conn.WriteToUDPAddrPort([]byte(text), at); err != nil {
		return err
	}
	if !eventuallyReady(s) {
		return errors.New("nothing comes")
	}
	if _, e := ask(unix.MSG_ERRQUEUE | unix.MSG_DONTWAIT); e != unix.EAGAIN {
		return fmt.Errorf("of errors: %w", e)
	}
	n, e := ask(unix.MSG_DONTWAIT)
	got := make([]byte, len(text))
	for i := range got {
		got[i] = *iovs[i].Base
	}
	if from, _ := parseInet(name); e != 0 || int(n) != len(text) || string(got) != text || from != at || m.Flags != 0 {
		return fmt.Errorf("%d bytes %.20q from %s with flags %x: %w", n, got, from, m.Flags, e)
	}
	iovs[7].Base = &memory[len(memory)-2*page] // among them one that can only be read
	if _, err := conn.WriteToUDPAddrPort([]byte(text), at); err != nil {
		return err
	}
	if !eventuallyReady(s) {
		return errors.New("nothing comes again")
	}
	if _, e := ask(unix.MSG_DONTWAIT); e != unix.EFAULT || *iovs[7].Base != 0 {
		return fmt.Errorf("into memory that can only be read: %w", e)
	}
	return nil
}

func eventuallyReady(s int) bool {
	p := []unix.PollFd{{Fd: int32(s), Events: unix.POLLIN}}
	n, _ := unix.Poll(p, int(patience.Milliseconds()))
	return n == 1
}

// TestReceiveInPieces: a datagram comes to where the command wants it, and nowhere else.
func TestReceiveInPieces(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	p := newPlace(t)
	env := []string{probeVar + "=udp-pieces"}
	if r := p.do(t, confiner(t, p.policy(), missing{}), env, exe); r.err != nil {
		t.Error(r.err, r.out)
	}
	if r := p.do(t, nil, env, exe); r.err != nil {
		t.Error("outside:", r.err, r.out)
	}
}

func TestPatchesWhereNothingMayBeWritten(t *testing.T) {
	const maps = "1000-3000 r--p 0 0:0 0 /a\n3000-5000 rw-p 0 0:0 0\n7000-8000 rw-s 0 0:0 0 /b c\n8000-9000 r-xp 0 0:0 0\nffffffffff600000-ffffffffff601000 --xp 0 0:0 0 [vsyscall]\n"
	b := make([]byte, 0x2000)
	for name, want := range map[string]struct {
		patches []patch
		no      bool
	}{
		"none":                      {nil, false},
		"in the midst":              {[]patch{{0x3000, b}}, false},
		"before":                    {[]patch{{0x2fff, b[:1]}}, true},
		"over the border":           {[]patch{{0x2fff, b[:2]}}, true},
		"out of the end":            {[]patch{{0x4fff, b}}, false}, // the write finds it
		"up to what is behind":      {[]patch{{0x7000, b[:0x1000]}}, false},
		"into what is behind":       {[]patch{{0x7000, b[:0x1001]}}, true},
		"nothing":                   {[]patch{{0x1000, nil}}, false},
		"the last of several":       {[]patch{{0x3000, b[:8]}, {0x4000, b[:8]}, {0x8000, b[:1]}}, true},
		"in any order":              {[]patch{{0x8000, b[:1]}, {0x4000, b[:8]}, {0x3000, b[:8]}}, true},
		"under another":             {[]patch{{0x3000, b}, {0x3800, b[:8]}, {0x7ffe, b[:2]}}, false},
		"beyond another":            {[]patch{{0x3000, b}, {0x3800, b[:8]}, {0x7fff, b[:2]}}, true},
		"at the end of all numbers": {[]patch{{^uint64(0), b[:9]}}, false}, // which no write takes
	} {
		if got := anyReadOnly(strings.NewReader(maps), want.patches); got != want.no {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !anyReadOnly(strings.NewReader("nonsense\n"), []patch{{1, b}}) {
		t.Error("nonsense is taken")
	}
}

// TestPatchesBothWays: what the kernel tells of an address is what the text says.
func TestPatchesBothWays(t *testing.T) {
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 5*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	must(t, err)
	defer func() { must(t, unix.Munmap(memory)) }()
	must(t, unix.Mprotect(memory[2*page:3*page], unix.PROT_READ))
	must(t, unix.Mprotect(memory[4*page:], unix.PROT_NONE))
	open := func() *os.File {
		maps, err := os.Open("/proc/self/maps")
		must(t, err)
		t.Cleanup(func() { maps.Close() })
		return maps
	}
	told := 0
	for at := 0; at < len(memory); at += page / 2 {
		for _, size := range []int{0, 1, page / 2, page/2 + 1, page} {
			p := patch{uint64(ptr(&memory[at])), make([]byte, size)}
			want := anyReadOnly(open(), []patch{p})
			if got := forbidden(open(), []patch{{p.at, nil}, p}); got != want {
				t.Errorf("%d bytes at %d: %t, but the text says %t", size, at, got, want)
			}
			if _, known := forbiddenAt(open(), p); known {
				told++
			}
			if free := at+size <= 2*page || at >= 3*page && at+size <= 4*page || size == 0; want == free {
				t.Errorf("%d bytes at %d: %t", size, at, want)
			}
		}
	}
	if told == 0 {
		t.Log("this kernel tells nothing of an address")
	}
}

// TestConnectsHoldNoSeats: a connect waits until what was sent before is read, for which
// the session needs a seat.
func TestConnectsHoldNoSeats(t *testing.T) {
	ls := newLookups(nil, newSeats())
	theirs, l, e := ls.open(unix.SOCK_SEQPACKET, unix.AF_INET, inetAddress(unix.AF_INET, netip.MustParseAddrPort("127.0.0.53:53")))
	must(t, e)
	ls.take()
	defer unix.Close(theirs)
	for range cap(ls.busy) {
		ls.busy <- struct{}{}
	}
	for range 2 {
		_, err := unix.Write(theirs, []byte("question"))
		must(t, err)
	}
	q := &question{broker: &broker{session: &session{seats: ls.seats}}}
	q.sit()
	rested := false
	l.connect(nil, netip.AddrPort{}, func(wait func()) {
		q.rest(func() { rested = rested || len(ls.seats.mine) == 0; wait() })
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
	ls := newLookups(nil, newSeats())
	ls.take()
	theirs, other, err := ls.open(unix.SOCK_SEQPACKET, unix.AF_INET, nil)
	must(t, err)
	defer func() {
		unix.Close(theirs)
		eventually(t, "the socket is kept", ls.none)
	}()
	if !other.deliver(datagram{data: []byte("x")}) {
		t.Fatal("there is no room")
	}
	eventually(t, "the first is not handed over", other.isEmpty) // so that what follows is queued
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
