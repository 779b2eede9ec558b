//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/datagrams"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

func init() {
	probeTable["udp-echo"] = escape{try: echoDatagrams}
	probeTable["udp-ask"] = escape{try: askEcho}
	probeTable["udp-greet"] = escape{try: greetEcho}
	probeTable["udp-out"] = escape{try: sendOut}
	probeTable["pairs"] = escape{try: pairUp}
}

// patience is for what has to come.
const patience = 30 * time.Second

// echoDatagrams answers every datagram with who it is from and what it says, by each way
// to receive and send that there is, until it is told to stop.
func echoDatagrams() error {
	for family, at := range map[string]string{"udp4": "127.0.0.1:0", "udp6": "[::1]:0", "udp": ":0"} {
		conn, err := net.ListenPacket(family, at)
		if family == "udp6" && err != nil {
			continue // the machine has no IPv6
		}
		if err != nil {
			return err
		}
		go echo(conn.(*net.UDPConn))
		if err := os.WriteFile(family+".new", []byte(conn.LocalAddr().String()), 0o600); err != nil {
			return err
		}
		if err := os.Rename(family+".new", family+".addr"); err != nil {
			return err
		}
	}
	if !await("stop") {
		return errors.New("nobody stops it")
	}
	return nil
}

func echo(conn *net.UDPConn) {
	b := make([]byte, datagrams.MaxUDP)
	for i := 0; ; i++ {
		var n int
		var from netip.AddrPort
		var err error
		if i%2 == 0 {
			n, from, err = conn.ReadFromUDPAddrPort(b)
		} else {
			n, _, _, from, err = conn.ReadMsgUDPAddrPort(b, nil)
		}
		if err != nil {
			return
		}
		said := fmt.Appendf(nil, "%d %s", from.Port(), b[:n])
		if n > 1000 {
			said = fmt.Appendf(nil, "%d bytes", n)
		}
		if i%3 == 0 {
			_, _, _ = conn.WriteMsgUDPAddrPort(said, nil, from)
		} else {
			_, _ = conn.WriteToUDPAddrPort(said, from)
		}
	}
}

// echoAt waits for where the echo is.
func echoAt(family string) netip.AddrPort {
	if !await(family + ".addr") {
		return netip.AddrPort{}
	}
	text, _ := os.ReadFile(family + ".addr")
	at, _ := netip.ParseAddrPort(string(text))
	if at.Addr().IsUnspecified() {
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	}
	return at
}

// askEcho asks the echo of an earlier command by every way.
func askEcho() error {
	at := echoAt("udp4")
	if echoAt("udp").Port() == 0 {
		return errors.New("there is no echo")
	}
	errs := errors.Join(askConnected(at, "udp4"), askConnected(echoAt("udp"), "udp4"), askUnconnected(at), askRaw(at), askMany(at), askMessages(at), askTwice(at))
	if fileExists("udp6.addr") {
		errs = errors.Join(errs, askConnected(echoAt("udp6"), "udp6"))
	}
	return errs
}

func askConnected(at netip.AddrPort, family string) error {
	conn, err := net.Dial(family, at.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	if conn.RemoteAddr().String() != at.String() || !local.Addr().IsLoopback() || local.Port() == 0 {
		return fmt.Errorf("%s is connected to %s, not %s", local, conn.RemoteAddr(), at)
	}
	b := make([]byte, datagrams.MaxUDP)
	for _, text := range []string{"hello", strings.Repeat("x", 60000), "again"} {
		if _, err := conn.Write([]byte(text)); err != nil {
			return err
		}
		n, err := conn.Read(b)
		want := fmt.Sprintf("%d %s", local.Port(), text)
		if len(text) > 1000 {
			want = fmt.Sprintf("%d bytes", len(text))
		}
		if err != nil || string(b[:n]) != want {
			return fmt.Errorf("connected: %.50q %w", b[:n], err)
		}
	}
	return nil
}

func askUnconnected(at netip.AddrPort) error {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if second, err := net.ListenPacket("udp4", conn.LocalAddr().String()); err == nil {
		second.Close()
		return errors.New("two have one port")
	}
	port := conn.LocalAddr().(*net.UDPAddr).Port
	b := make([]byte, 99)
	for i := range 50 {
		if _, err := conn.WriteToUDPAddrPort(fmt.Appendf(nil, "%d", i), at); err != nil {
			return err
		}
		n, from, err := conn.ReadFromUDPAddrPort(b)
		if err != nil || from != at || string(b[:n]) != fmt.Sprintf("%d %d", port, i) {
			return fmt.Errorf("%q from %s: %w", b[:n], from, err)
		}
	}
	return nil
}

// askRaw waits in the call itself, looks before it takes, and cuts off.
func askRaw(at netip.AddrPort) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	limit := unix.NsecToTimeval(patience.Nanoseconds())
	_, to := sockaddrOf(at)
	b := make([]byte, 3)
	none := unix.Timeval{Usec: 1000}
	errs := errors.Join(unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &none), unix.Bind(s, &unix.SockaddrInet4{}))
	_, _, err = unix.Recvfrom(s, b, 0)
	errs = errors.Join(errs, wantErrno("a receive of nothing", err, unix.EAGAIN),
		unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit), unix.Sendto(s, []byte("raw"), 0, to))
	if errs != nil {
		return errs
	}
	for _, flags := range []int{unix.MSG_PEEK, unix.MSG_PEEK | unix.MSG_TRUNC, unix.MSG_TRUNC} {
		n, from, err := unix.Recvfrom(s, b, flags)
		sender, ok := from.(*unix.SockaddrInet4)
		if err != nil || !ok || sender.Port != int(at.Port()) || n != 3 && flags&unix.MSG_TRUNC == 0 || n < 6 && flags&unix.MSG_TRUNC != 0 {
			return fmt.Errorf("flags %x: %d from %+v: %w", flags, n, from, err)
		}
	}
	_, _, err = unix.Recvfrom(s, b, unix.MSG_DONTWAIT)
	return errors.Join(wantErrno("nothing is left", err, unix.EAGAIN),
		wantErrno("too much", unix.Sendto(s, make([]byte, datagrams.MaxUDP+1), 0, to), unix.EMSGSIZE),
		wantErrno("a second address", unix.Bind(s, &unix.SockaddrInet4{}), unix.EINVAL))
}

// askMany has several sockets ask at once.
func askMany(at netip.AddrPort) error {
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() { errs[i] = askUnconnected(at) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// askMessages asks by sendmmsg(2) and gets the answers by recvmmsg(2), as C programs do.
func askMessages(at netip.AddrPort) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	type one struct {
		unix.Msghdr
		size uint32
		_    [4]byte
	}
	name := kernel.InetAddress(unix.AF_INET, at)
	parts := [2][2]string{{"on", "e"}, {"t", "wo"}}
	var sends [2]one
	var iovs [2][2]unix.Iovec
	for i := range sends {
		for j, part := range parts[i] {
			b := []byte(part)
			iovs[i][j].Base = &b[0]
			iovs[i][j].SetLen(len(b))
		}
		sends[i].Name, sends[i].Namelen = &name[0], uint32(len(name))
		sends[i].Iov, sends[i].Iovlen = &iovs[i][0], 2
	}
	n, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s), uintptr(unsafe.Pointer(&sends)), 2, 0, 0, 0)
	if e != 0 || n != 2 || sends[0].size != 3 || sends[1].size != 3 {
		return fmt.Errorf("%d messages are sent, %d and %d bytes: %w", n, sends[0].size, sends[1].size, e)
	}
	var got []string
	for len(got) < 2 {
		var b [99]byte
		var from [16]byte
		iov := unix.Iovec{Base: &b[0]}
		iov.SetLen(len(b))
		m := one{Msghdr: unix.Msghdr{Name: &from[0], Namelen: 16, Iov: &iov, Iovlen: 1}}
		n, _, e := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(s), uintptr(unsafe.Pointer(&m)), 1, 0, 0, 0)
		sender, _ := kernel.ParseInet(from[:])
		if e != 0 || n != 1 || sender != at || m.Namelen != 16 {
			return fmt.Errorf("%d messages from %s: %w", n, sender, e)
		}
		_, text, _ := strings.Cut(string(b[:m.size]), " ")
		got = append(got, text)
	}
	if strings.Join(got, " ") != "one two" {
		return fmt.Errorf("%q", got)
	}
	return nil
}

// askTwice connects to one and then to another: each gets what is meant for it, and who
// is connected hears of nobody else.
func askTwice(at netip.AddrPort) error {
	listen := func() (*net.UDPConn, netip.AddrPort, error) {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, netip.AddrPort{}, err
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		return c, netip.MustParseAddrPort(c.LocalAddr().String()), nil
	}
	one, oneAt, err := listen()
	if err != nil {
		return err
	}
	defer one.Close()
	two, twoAt, err := listen()
	if err != nil {
		return err
	}
	defer two.Close()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	for i, to := range []netip.AddrPort{oneAt, twoAt} {
		_, sa := sockaddrOf(to)
		if err := unix.Connect(s, sa); err != nil {
			return err
		}
		if _, err := unix.Write(s, []byte{byte('1' + i)}); err != nil {
			return err
		}
	}
	b := make([]byte, 9)
	n, from, err := one.ReadFromUDPAddrPort(b)
	m, _, err2 := two.ReadFromUDPAddrPort(b[4:])
	if err != nil || err2 != nil || string(b[:n]) != "1" || string(b[4:4+m]) != "2" {
		return fmt.Errorf("%q %q: %w", b[:n], b[4:4+m], errors.Join(err, err2))
	}
	if _, err := one.WriteToUDPAddrPort([]byte("stranger"), from); err != nil {
		return err
	}
	if _, err := two.WriteToUDPAddrPort([]byte("friend"), from); err != nil {
		return err
	}
	n, err = unix.Read(s, b)
	if err != nil || string(b[:n]) != "friend" {
		return fmt.Errorf("it hears %q: %w", b[:max(n, 0)], err)
	}
	return nil
}

// greetEcho waits a moment for the echo's answer.
func greetEcho() error {
	conn, err := net.Dial("udp4", echoAt("udp4").String())
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(500 * time.Millisecond))
	if _, err := conn.Write([]byte("hello")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 99))
	return err
}

// TestDatagramsOfTheSession: commands of one session reach each other by UDP on
// loopback in both mechanisms, as they would outside.
func TestDatagramsOfTheSession(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	serve := probeVar + "=udp-echo " + exe + " >echo.log 2>&1 & "
	ask := []string{probeVar + "=udp-ask"}
	tiers := map[string]kernel.Missing{"threads": {}, "threads, no duplicates": {GetFD: true}, "threads, landlock 1": {LandlockAbove: 1}}
	for name, without := range tiers {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			c := confiner(t, p.policy(), without)
			p.sh(t, c, serve)
			r := p.do(t, c, ask, exe)
			must(t, os.WriteFile(filepath.Join(p.ws, "stop"), nil, 0o600))
			if r.err != nil {
				log, _ := os.ReadFile(filepath.Join(p.ws, "echo.log"))
				t.Error(r.err, r.out, string(log), r.domain.Refusals())
			}
			eventually(t, "the domains end", func() bool { return len(c.Live()) == 0 })
			eventually(t, "sockets are kept", func() bool {
				return c.Datagrams.None() && holdsNothing(c.Datagrams)
			})
		})
	}
	t.Run("behind a gate", func(t *testing.T) {
		p := newPlace(t)
		c, _ := gated(t, p, "one.example", &book{}, kernel.Missing{})
		p.sh(t, c, serve)
		if r := p.do(t, c, ask, exe); r.err != nil {
			t.Error(r.err, r.out, r.domain.Refusals())
		}
	})
	t.Run("namespaces", func(t *testing.T) {
		p := newPlace(t)
		i := p.isolator(t, true)
		_, served := p.begin(t, i, []string{probeVar + "=udp-echo"}, exe)
		defer func() { must(t, served.Kill()); <-served.Done() }()
		if out, status := p.in(t, i, ask, exe); status.ExitStatus() != 0 {
			t.Error(out)
		}
	})
	t.Run("outside", func(t *testing.T) { // the test asks for what there is
		p := newPlace(t)
		echo := exec.Command(exe)
		echo.Dir, echo.Env = p.ws, append(os.Environ(), probeVar+"=udp-echo")
		must(t, echo.Start())
		defer func() {
			must(t, os.WriteFile(filepath.Join(p.ws, "stop"), nil, 0o600))
			must(t, echo.Wait())
		}()
		if r := p.do(t, nil, ask, exe); r.err != nil {
			t.Error(r.err, r.out)
		}
	})
}

// sendOut sends to PROBE_UDP, a service of the machine, by every way, and says which
// of them the kernel took.
func sendOut() error {
	at := netip.MustParseAddrPort(os.Getenv("PROBE_UDP"))
	for _, to := range []netip.AddrPort{at, netip.AddrPortFrom(netip.AddrFrom16(at.Addr().As16()), at.Port()), netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())} {
		family, sa := sockaddrOf(to)
		tried := func(what string, send func(s int) error) {
			s, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				err = send(s)
				unix.Close(s)
			}
			fmt.Println(what, to, err)
		}
		tried("sendto", func(s int) error { return unix.Sendto(s, []byte("got out"), 0, sa) })
		tried("sendmsg", func(s int) error { return unix.Sendmsg(s, []byte("got out"), nil, sa, 0) })
		tried("connected", func(s int) error {
			err := unix.Connect(s, sa)
			_, err2 := unix.Write(s, []byte("got out"))
			return errors.Join(err, err2)
		})
	}
	return errors.Join(swapAddresses(at), swapSockets(at))
}

// swapSockets has a descriptor change between a datagram socket and sockets of other kinds
// as fast as it can, while it sends and connects by it.
func swapSockets(at netip.AddrPort) error {
	family, to := sockaddrOf(at)
	kinds := [][2]int{{family, unix.SOCK_STREAM}, {unix.AF_UNIX, unix.SOCK_SEQPACKET}, {unix.AF_UNIX, unix.SOCK_STREAM}}
	socket := func(family, kind int) (int, error) {
		return unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	}
	for _, kind := range kinds {
		one, err := socket(family, unix.SOCK_DGRAM)
		if err != nil {
			return err
		}
		two, err := socket(kind[0], kind[1])
		if err != nil {
			return err
		}
		swapped, err := socket(family, unix.SOCK_DGRAM)
		if err != nil {
			return err
		}
		stop := make(chan struct{})
		var swapper sync.WaitGroup
		swapper.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Dup3(one, swapped, unix.O_CLOEXEC)
					_ = unix.Dup3(two, swapped, unix.O_CLOEXEC)
				}
			}
		})
		for i := range 500 {
			_ = unix.Sendto(swapped, []byte("got out"), unix.MSG_NOSIGNAL, to)
			_ = unix.Sendmsg(swapped, []byte("got out"), nil, to, unix.MSG_NOSIGNAL)
			if i%10 == 0 {
				_ = unix.Connect(swapped, to)
				_, _ = unix.SendmsgN(swapped, []byte("got out"), nil, nil, unix.MSG_NOSIGNAL)
			}
		}
		close(stop)
		swapper.Wait()
		for _, s := range []int{one, two, swapped} {
			unix.Close(s)
		}
	}
	return nil
}

// swapAddresses has the address of a send change between a service of the session's and
// one of the machine's as fast as it can.
func swapAddresses(at netip.AddrPort) error {
	own, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	defer own.Close()
	mine := kernel.InetAddress(unix.AF_INET, netip.MustParseAddrPort(own.LocalAddr().String()))
	theirs, name := kernel.InetAddress(unix.AF_INET, at), kernel.InetAddress(unix.AF_INET, at)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				copy(name, mine)
				copy(name, theirs)
			}
		}
	}()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	b := []byte("got out")
	iov := unix.Iovec{Base: &b[0]}
	iov.SetLen(len(b))
	m := unix.Msghdr{Name: &name[0], Namelen: uint32(len(name)), Iov: &iov, Iovlen: 1}
	for range 2000 {
		_, _, _ = unix.Syscall(unix.SYS_SENDMSG, uintptr(s), uintptr(unsafe.Pointer(&m)), 0)
		_, _, _ = unix.Syscall6(unix.SYS_SENDTO, uintptr(s), ptr(&b[0]), uintptr(len(b)), 0, ptr(&name[0]), uintptr(len(name)))
	}
	return nil
}

// TestDatagramsStayInside: no datagram of a command comes to a service of the machine,
// on loopback or at another of its addresses, nor to another session.
func TestDatagramsStayInside(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	service, err := net.ListenUDP("udp", &net.UDPAddr{})
	must(t, err)
	defer service.Close()
	heard := make(chan string, 100000)
	go func() {
		b := make([]byte, 99)
		for {
			n, err := service.Read(b)
			if err != nil {
				close(heard)
				return
			}
			select {
			case heard <- string(b[:n]):
			default:
			}
		}
	}()
	port := uint16(service.LocalAddr().(*net.UDPAddr).Port)
	to := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), ownAddress(t, true)}
	for _, at := range to {
		env := []string{probeVar + "=udp-out", "PROBE_UDP=" + netip.AddrPortFrom(at, port).String()}
		quiet := func(t *testing.T) {
			t.Helper()
			select {
			case got := <-heard:
				t.Errorf("the service at %s hears %q", at, got)
			case <-time.After(200 * time.Millisecond):
			}
		}
		for name, without := range map[string]kernel.Missing{"threads": {}, "threads, no duplicates": {GetFD: true}} {
			t.Run(name+" "+at.String(), func(t *testing.T) {
				p := newPlace(t)
				r := p.do(t, confiner(t, p.policy(), without), env, exe)
				if r.err != nil {
					t.Error(r.err, r.out)
				}
				quiet(t)
				if !at.IsLoopback() {
					r.wantRefusal(t, "send UDP to "+netip.AddrPortFrom(at, port).String())
				}
				rules := "one.example"
				if !at.IsLoopback() {
					rules += "," + at.String() + ":*" // which is about TCP
				}
				behind, _ := gated(t, p, rules, &book{}, without)
				p.do(t, behind, env, exe)
				quiet(t)
			})
		}
		t.Run("namespaces "+at.String(), func(t *testing.T) {
			p := newPlace(t)
			p.in(t, p.isolator(t, true), env, exe)
			quiet(t)
		})
	}
	t.Run("another session", func(t *testing.T) {
		p := newPlace(t)
		c := confiner(t, p.policy(), kernel.Missing{})
		p.sh(t, c, probeVar+"=udp-echo "+exe+" >echo.log 2>&1 &")
		greet := []string{probeVar + "=udp-greet"}
		eventually(t, "the echo does not answer its own session", func() bool { return p.do(t, c, greet, exe).err == nil })
		if r := p.do(t, confiner(t, p.policy(), kernel.Missing{}), greet, exe); r.err == nil {
			t.Error("it answers another session")
		}
	})
	if r := newPlace(t).do(t, nil, []string{probeVar + "=udp-out", "PROBE_UDP=" + netip.AddrPortFrom(to[0], port).String()}, exe); r.err != nil || !strings.Contains(<-heard, "got out") {
		t.Error("outside it hears nothing: the test proves nothing", r.out)
	}
}

// pairUp makes pairs of Unix datagram sockets, and tries what they must not do.
func pairUp() error {
	for _, flags := range []int{0, unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC} {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|flags, 0)
		if err != nil {
			return err
		}
		got := make([]byte, 9)
		for _, text := range []string{"one", "two"} {
			if _, err := unix.Write(p[0], []byte(text)); err != nil {
				return err
			}
		}
		n, err := unix.Read(p[1], got)
		if err != nil || string(got[:n]) != "one" {
			return fmt.Errorf("%q %w", got[:max(n, 0)], err)
		}
		status, err := unix.FcntlInt(uintptr(p[0]), unix.F_GETFL, 0)
		closes, err2 := unix.FcntlInt(uintptr(p[0]), unix.F_GETFD, 0)
		if err != nil || err2 != nil || status&unix.O_NONBLOCK != flags&unix.SOCK_NONBLOCK || closes&unix.FD_CLOEXEC != btoi(flags&unix.SOCK_CLOEXEC != 0) {
			return fmt.Errorf("flags %x: %x %x", flags, status, closes)
		}
		_ = unix.Sendto(p[1], []byte("got out"), 0, &unix.SockaddrUnix{Name: os.Getenv("PROBE_DGRAM")})
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestDatagramPairs: such a pair works in both mechanisms, and stays one.
func TestDatagramPairs(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	p := newPlace(t)
	outside := filepath.Join(p.outside, "service")
	service, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: outside, Net: "unixgram"})
	must(t, err)
	defer service.Close()
	env := []string{probeVar + "=pairs", "PROBE_DGRAM=" + outside}
	quiet := func() {
		t.Helper()
		_ = service.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if n, err := service.Read(make([]byte, 9)); err == nil {
			t.Errorf("the service hears %d bytes", n)
		}
	}
	for _, without := range []kernel.Missing{{}, {GetFD: true}} {
		if r := p.do(t, confiner(t, p.policy(), without), env, exe); r.err != nil {
			t.Error(r.err, r.out)
		}
		quiet()
	}
	if out, status := p.in(t, p.isolator(t, true), env, exe); status.ExitStatus() != 0 {
		t.Error(out)
	}
	quiet()
	if r := p.do(t, nil, env, exe); r.err != nil {
		t.Error(r.err, r.out)
	}
	_ = service.SetReadDeadline(time.Now().Add(patience))
	if _, err := service.Read(make([]byte, 9)); err != nil {
		t.Error("outside it hears nothing: the test proves nothing:", err)
	}
}
