//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/datagrams"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// oneExample asks for the address of one.example.
const oneExample = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03one\x07example\x00\x00\x01\x00\x01"

// want is an error unless err is e.
func wantErrno(what string, err error, e unix.Errno) error {
	if err == e || err == nil && e == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w, not %w", what, err, e)
}

// sendDatagrams tries with a UDP socket what it can.
func sendDatagrams() error {
	names := &unix.SockaddrInet4{Addr: [4]byte{198, 51, 100, 53}, Port: 53}
	elsewhere := &unix.SockaddrInet4{Addr: [4]byte{198, 51, 100, 9}, Port: 443}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	reply := make([]byte, 512)
	asks := func(send func() error) error {
		if err := send(); err != nil {
			return err
		}
		n, err := unix.Read(s, reply)
		if err != nil || n < len(oneExample) || string(reply[:2]) != oneExample[:2] {
			return fmt.Errorf("%q %w", reply[:max(n, 0)], err)
		}
		return nil
	}
	unspecific := make([]byte, 16)
	errs := errors.Join(
		wantErrno("bind", unix.Bind(s, &unix.SockaddrInet4{}), 0),
		wantErrno("bind again", unix.Bind(s, &unix.SockaddrInet4{Port: 5353}), unix.EINVAL),
		wantErrno("bind to an address of the network", unix.Bind(s, &unix.SockaddrInet4{Port: 5353, Addr: [4]byte{198, 51, 100, 1}}), unix.EACCES),
		wantErrno("bind to a path", unix.Bind(s, &unix.SockaddrUnix{Name: "s"}), unix.EINVAL),
		wantErrno("listen", unix.Listen(s, 1), unix.EOPNOTSUPP),
		wantErrno("connect to a path", unix.Connect(s, &unix.SockaddrUnix{Name: "s"}), unix.EAFNOSUPPORT),
		wantErrno("connect elsewhere", unix.Connect(s, elsewhere), unix.ENETUNREACH),
		wantErrno("send elsewhere", unix.Sendto(s, []byte(oneExample), 0, elsewhere), unix.ENETUNREACH),
		asks(func() error { return unix.Sendto(s, []byte(oneExample), 0, names) }),
		wantErrno("connect", unix.Connect(s, names), 0),
		asks(func() error { _, err := unix.Write(s, []byte(oneExample)); return err }),
		wantErrno("send a message elsewhere", unix.Sendmsg(s, []byte(oneExample), nil, elsewhere, 0), unix.ENETUNREACH),
		asks(func() error { // descriptors are refused, or closed
			if unix.Sendmsg(s, []byte(oneExample), unix.UnixRights(s), nil, 0) == nil {
				return nil
			}
			_, err := unix.Write(s, []byte(oneExample))
			return err
		}),
		wantErrno("disconnect", syscallErr(unix.SYS_CONNECT, uintptr(s), ptr(&unspecific[0]), uintptr(len(unspecific))), 0),
		wantErrno("option", unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_RECVERR, 1), 0))
	if peer, err := unix.Getsockname(s); errs == nil {
		if _, ok := peer.(*unix.SockaddrInet4); !ok {
			errs = fmt.Errorf("its own address: %+v %w", peer, err)
		}
	}
	if errs != nil {
		return errs
	}
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	size := uint32(16)
	if err := wantErrno("a name into memory that can only be read", syscallErr(unix.SYS_GETSOCKNAME, uintptr(s), ptr(&page[0]), ptr((*byte)(unsafe.Pointer(&size)))), unix.EFAULT); err != nil {
		return err
	}
	for _, none := range []string{"no question", "", strings.Repeat("x", datagrams.MaxQuery+1)} {
		if err := unix.Sendmsg(s, []byte(none), nil, names, 0); err != nil {
			return fmt.Errorf("%.20q: %w", none, err)
		}
		// Nothing comes of it, and the socket is as good as before.
		if err := asks(func() error { return unix.Sendto(s, []byte(oneExample), 0, names) }); err != nil {
			return fmt.Errorf("after %.20q: %w", none, err)
		}
	}
	return manySockets()
}

// manySockets opens as many as it gets.
func manySockets() error {
	for range 2 {
		var all []int
		for len(all) <= datagrams.MaxSockets {
			s, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
			if err != nil {
				break
			}
			all = append(all, s)
		}
		if len(all) < datagrams.MaxSockets/2 || len(all) > datagrams.MaxSockets {
			return fmt.Errorf("%d sockets", len(all))
		}
		for _, s := range all {
			unix.Close(s)
		}
	}
	return nil
}

// TestDatagrams: what commands get for a UDP socket sends nothing but questions, and
// these to the server.
func TestDatagrams(t *testing.T) {
	for name, without := range map[string]kernel.Missing{"here": {}, "no duplicates": {GetFD: true}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			exe, err := os.Executable()
			must(t, err)
			c, g := gated(t, p, "one.example", &book{of: map[string]string{"one.example": "198.51.100.1"}}, without)
			r := p.do(t, c, []string{probeVar + "=datagrams"}, exe)
			if r.err != nil {
				t.Error(r.err, r.out)
			}
			wantBlocked(t, g, "198.51.100.9:443")
			r.wantRefusal(t, "receive UDP")
			waitDone(t, r.domain)
			eventually(t, "sockets for names are kept", func() bool { return c.Datagrams.None() && holdsNothing(c.Datagrams) })
		})
	}
}

// TestBehindAGateAllHolds: the sandbox proves the same of itself, and its options steer
// no socket.
func TestBehindAGateAllHolds(t *testing.T) {
	p := newPlace(t)
	exe, err := os.Executable()
	must(t, err)
	c, _ := gated(t, p, "one.example", &book{}, kernel.Missing{})
	if err := c.SelfTest(); err != nil {
		t.Error(err)
	}
	r := p.do(t, c, []string{probeVar + "=options"}, exe)
	if r.err != nil {
		t.Error(r.err, r.out)
	}
}

// setOptions tries what steers a TCP socket, and what does not.
func setOptions() error {
	s, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	u, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	header := string(segments())
	return errors.Join(
		wantErrno("only", unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1), 0),
		wantErrno("port", unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1), 0),
		wantErrno("header", unix.SetsockoptString(s, unix.IPPROTO_IPV6, unix.IPV6_RTHDR, header), unix.ENOPROTOOPT),
		wantErrno("interface", unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_IF, 1<<24), unix.ENOPROTOOPT),
		wantErrno("mark", unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_FREEBIND, 1), unix.ENOPROTOOPT),
		wantErrno("device", unix.BindToDevice(s, "lo"), unix.ENOPROTOOPT),
		wantErrno("port of a socket for names", unix.SetsockoptInt(u, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1), 0),
		wantErrno("multicast", unix.SetsockoptInt(u, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 1), 0))
}

// connectCrowd connects to PROBE_DEAD, which does not answer, and meanwhile to PROBE_TO.
func connectCrowd() error {
	dead, to := netip.MustParseAddrPort(os.Getenv("PROBE_DEAD")), netip.MustParseAddrPort(os.Getenv("PROBE_TO"))
	for range 40 {
		family, sa := sockaddrOf(dead)
		s, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		go func() { _ = unix.Connect(s, sa) }()
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	failed := map[string]int{}
	for range 200 {
		all.Go(func() {
			family, sa := sockaddrOf(to)
			s, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				defer unix.Close(s)
				if err = unix.Connect(s, sa); err == nil {
					_, err = unix.Read(s, make([]byte, 5))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			failed[fmt.Sprint(err)]++
		})
	}
	all.Wait()
	fmt.Println(failed)
	return nil
}

// TestCrowd: 200 connects at once succeed while others wait for who does not answer.
func TestCrowd(t *testing.T) {
	p := newPlace(t)
	exe, err := os.Executable()
	must(t, err)
	to := listenAt(t, ownAddress(t, true))
	dead := netip.MustParseAddrPort("198.51.100.1:80")
	if silent := fullListener(t, to.Addr()); silent.IsValid() {
		dead = silent
	}
	c, _ := gated(t, p, to.String()+","+dead.String(), &book{}, kernel.Missing{})
	r := p.do(t, c, []string{probeVar + "=crowd", "PROBE_DEAD=" + dead.String(), "PROBE_TO=" + to.String()}, exe)
	if strings.TrimSpace(r.out) != "map[<nil>:200]" {
		t.Errorf("%v %s", r.err, r.out)
	}
	waitDone(t, r.domain)
	eventually(t, "connects are at hand still", func() bool { return len(c.Seats.Mine) == 0 && len(c.Waits) == 0 })
}

// fullListener is one that takes no connection any more.
func fullListener(t *testing.T, ip netip.Addr) netip.AddrPort {
	family, sa := sockaddrOf(netip.AddrPortFrom(ip, 0))
	l, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(l) })
	must(t, unix.Bind(l, sa))
	must(t, unix.Listen(l, 0))
	at, ok := kernel.LocalAddress(l)
	if !ok {
		return netip.AddrPort{}
	}
	for range 4 {
		s, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		must(t, err)
		t.Cleanup(func() { unix.Close(s) })
		_, sa := sockaddrOf(at)
		_ = unix.Connect(s, sa)
	}
	return at
}

// holdsNothing reports whether no socket and no address of a session is left.
func holdsNothing(ls *datagrams.Sockets) bool {
	places, addresses := ls.Held()
	return places == 0 && addresses == 0
}
