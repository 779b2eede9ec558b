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

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

func init() {
	probeTable["udp-wait"] = escape{try: waitMany}
	probeTable["udp-pieces"] = escape{try: receiveInPieces}
}

// waiters are more than can wait at once.
const waiters = 2 * broker.WaitingReceives

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
				errs[i*waiters/sockets+j] = kernel.IgnoringEINTR(func() error { _, _, err := unix.Recvfrom(s, make([]byte, 9), 0); return err })
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
	for name, without := range map[string]kernel.Missing{"threads": {}, "threads, no duplicates": {GetFD: true}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			c := confiner(t, p.policy(), without)
			before := descriptors()
			done := make(chan result, 1)
			go func() { done <- p.do(t, c, []string{probeVar + "=udp-wait"}, exe) }()
			eventually(t, "too few wait: nothing is proven", func() bool { return len(c.Receives) == broker.WaitingReceives })
			sockets, _ := c.Datagrams.Held()
			each := 1
			if without.GetFD {
				each = 2
			}
			eventually(t, "waiting takes descriptors", func() bool { return descriptors() < before+each*sockets+broker.WaitingReceives })
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
	text := strings.Repeat("0123456789", broker.MaxPieces/10)
	iovs := make([]unix.Iovec, broker.MaxPieces)
	for i := range iovs { // one byte each, from the last part to the first
		iovs[i].Base = &memory[len(memory)-2*page*(i+1)+page+i]
		iovs[i].SetLen(1)
	}
	name := make([]byte, unix.SizeofSockaddrInet4)
	m := unix.Msghdr{Name: &name[0], Namelen: uint32(len(name)), Iov: &iovs[0], Iovlen: broker.MaxPieces, Flags: -1}
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
	if from, _ := kernel.ParseInet(name); e != 0 || int(n) != len(text) || string(got) != text || from != at || m.Flags != 0 {
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
	if r := p.do(t, confiner(t, p.policy(), kernel.Missing{}), env, exe); r.err != nil {
		t.Error(r.err, r.out)
	}
	if r := p.do(t, nil, env, exe); r.err != nil {
		t.Error("outside:", r.err, r.out)
	}
}
