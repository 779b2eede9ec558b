//go:build amd64 || arm64

package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/gateway"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// netVar makes the test binary be a server in a network of its own, where every
// packet that leaves the machine is counted.
const netVar = "CONFINE_TEST_NETWORK"

const tunnel = "tun0"

// ways are attempts to send a packet past the address that the broker sees: to
// servers of the session itself, which it permits, but by another interface.
var ways = map[string]func() error{
	"device":           func() error { return steer4(func(c, _, _ int) { toDevice(c) }, nil) },
	"interface":        func() error { return steer4(func(c, _, _ int) { toInterface(c) }, nil) },
	"device, late":     func() error { return steer4(nil, func(c, _, _ int) { toDevice(c) }) },
	"device, accepted": func() error { return steer4(nil, func(_, a, _ int) { toDevice(a) }) },
	"device, listener": func() error { return steer4(func(_, _, l int) { toDevice(l) }, nil) },
	"header":           func() error { return steer6(func(c, _, _ int) { byHeader(c) }, nil) },
	"header, late":     func() error { return steer6(nil, func(c, _, _ int) { byHeader(c) }) },
	"fast open":        fastOpenOut,
	"ancillary":        ancillaryHeader,
	"datagram":         func() error { return datagramOut(443, false) },
	"question":         func() error { return datagramOut(53, false) },
	"question, sent":   func() error { return datagramOut(53, true) },
	"late address":     lateAddress,
}

func steer4(before, after func(c, a, l int)) error {
	return steer(unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}, before, after)
}

func steer6(before, after func(c, a, l int)) error {
	return steer(unix.AF_INET6, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}, before, after)
}

// steer connects to a server of its own and sends in both directions.
func steer(domain int, at unix.Sockaddr, before, after func(c, a, l int)) error {
	l, err1 := unix.Socket(domain, unix.SOCK_STREAM, 0)
	c, err2 := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("%v %v", err1, err2)
	}
	if err := unix.Bind(l, at); err != nil {
		return err
	}
	if err := unix.Listen(l, 1); err != nil {
		return err
	}
	if before != nil {
		before(c, -1, l)
	}
	to, err := unix.Getsockname(l)
	if err != nil {
		return err
	}
	_ = unix.Connect(c, to)
	if after != nil {
		a, _, err := unix.Accept(l)
		if err != nil {
			return err
		}
		after(c, a, l)
		_, _ = unix.Write(a, []byte("out of the sandbox"))
	}
	_, _ = unix.Write(c, []byte("out of the sandbox"))
	time.Sleep(300 * time.Millisecond) // for as long the kernel may send
	return nil
}

func toDevice(sock int) { _ = unix.BindToDevice(sock, tunnel) }

func toInterface(sock int) {
	if req, err := unix.NewIfreq(tunnel); err == nil && unix.IoctlIfreq(sock, unix.SIOCGIFINDEX, req) == nil {
		_ = unix.SetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, int(req.Uint32()))
	}
}

// segments is a routing header that takes packets for ::1 by way of fd99::2.
func segments() []byte {
	h := []byte{0, 4, 4, 1, 1, 0, 0, 0}
	last, via := make([]byte, 16), append([]byte{0xfd, 0x99}, make([]byte, 14)...)
	last[15], via[15] = 1, 2
	return append(append(h, last...), via...)
}

func byHeader(sock int) {
	_ = unix.SetsockoptString(sock, unix.IPPROTO_IPV6, unix.IPV6_RTHDR, string(segments()))
}

func fastOpenOut() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_ = unix.Sendmsg(s, []byte("out of the sandbox"), nil, &unix.SockaddrInet4{Addr: [4]byte{10, 99, 0, 2}, Port: 80}, unix.MSG_FASTOPEN)
	time.Sleep(300 * time.Millisecond)
	return nil
}

// ancillaryHeader names the detour in a control message. The kernel has never
// heeded that on TCP; should it begin to, the test says so.
func ancillaryHeader() error {
	header := segments()
	oob := make([]byte, unix.CmsgSpace(len(header)))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	h.Level, h.Type = unix.IPPROTO_IPV6, unix.IPV6_RTHDR
	h.SetLen(unix.CmsgLen(len(header)))
	copy(oob[unix.CmsgLen(0):], header)
	return steer6(nil, func(c, _, _ int) { _ = unix.Sendmsg(c, []byte("out of the sandbox"), oob, nil, 0) })
}

// datagramOut sends a question by UDP: to a connected address, or to one that is out
// of a filter's sight.
func datagramOut(port int, message bool) error {
	to := &unix.SockaddrInet4{Addr: [4]byte{10, 99, 0, 2}, Port: port}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil // refused without a gate, and then nothing is sent
	}
	for _, text := range []string{oneExample, "out of the sandbox"} {
		if message {
			_ = unix.Sendmsg(s, []byte(text), nil, to, 0)
			_ = unix.Sendmsg(s, []byte(text), nil, &unix.SockaddrInet4{Addr: to.Addr, Port: 443}, 0)
		} else if unix.Connect(s, to) == nil {
			_, _ = unix.Write(s, []byte(text))
		}
		_ = unix.Sendto(s, []byte(text), 0, to)
	}
	time.Sleep(300 * time.Millisecond)
	return nil
}

// lateAddress has another thread change where a connect and a send go to.
func lateAddress() error {
	to := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: 80 << 8, Addr: [4]byte{127, 0, 0, 1}}
	end := make(chan struct{})
	go func() {
		for b := byte(0); ; b ^= 1 {
			select {
			case <-end:
				return
			default:
				to.Addr = [][4]byte{{127, 0, 0, 1}, {10, 99, 0, 2}}[b]
				to.Port = []uint16{53 << 8, 80 << 8}[b]
			}
		}
	}()
	text := []byte("out of the sandbox")
	for range 200 {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
			s, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				continue
			}
			_ = syscallErr(unix.SYS_SENDTO, uintptr(s), ptr(&text[0]), uintptr(len(text)), 0, ptr(&to), unsafe.Sizeof(to))
			_ = syscallErr(unix.SYS_CONNECT, uintptr(s), ptr(&to), unsafe.Sizeof(to))
			_, _ = unix.Write(s, text)
			unix.Close(s)
		}
	}
	close(end)
	return nil
}

// TestNoPacketLeaves runs every way in a network namespace with a way out, first
// unconfined, where its packets leave, which proves it, and then confined.
func TestNoPacketLeaves(t *testing.T) {
	p := newPlace(t)
	exe, err := os.Executable()
	must(t, err)
	server := exec.Command(exe)
	server.Env = append(os.Environ(), netVar+"="+p.ws)
	server.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := server.CombinedOutput()
	if strings.Contains(string(out), "no network:") || err != nil && os.Getuid() != 0 {
		t.Skipf("no network of our own here: %v %s", err, out)
	}
	must(t, err)
	proven := 0
	for line := range strings.Lines(string(out)) {
		var way string
		var free, caged, gated int
		if _, err := fmt.Sscanf(line, "%q %d %d %d", &way, &free, &caged, &gated); err != nil {
			t.Error(line)
			continue
		}
		if free > 0 {
			proven++
		} else {
			t.Logf("%s: not even unconfined does a packet leave", way)
		}
		if caged+gated > 0 {
			t.Errorf("%s: %d packets left the sandbox, and %d behind a gate", way, caged, gated)
		}
	}
	if proven < 3 {
		t.Errorf("only %d ways work unconfined", proven)
	}
}

// beNetwork prints, for each way, how many packets left unconfined and confined.
func beNetwork(dir string) {
	packets, err := openTunnel()
	if err != nil {
		fmt.Println("no network:", err)
		os.Exit(1)
	}
	p := place{ws: dir}
	rules, err := network.Parse("one.example,10.99.0.3:80")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	gate := network.NewGate(network.Config{Rules: rules, Resolver: &book{of: map[string]string{"one.example": "198.51.100.1"}}})
	c, err := threads.New(p.policy(), threads.Options{})
	behind, err2 := threads.New(p.policy(), threads.Options{Gate: gate})
	if err = errors.Join(err, err2); err != nil {
		fmt.Println("no network:", err)
		os.Exit(1)
	}
	exe, _ := os.Executable()
	for way := range ways {
		var count [3]int32
		for i := range count {
			before := packets.Load()
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), netVar+"=", probeVar+"=steer", "PROBE_WAY="+way)
			if i == 0 {
				err = cmd.Run()
			} else {
				err = runIn([]*threads.Confiner{1: c, 2: behind}[i], cmd)
			}
			if err != nil {
				fmt.Println(way, err)
			}
			count[i] = packets.Load() - before
			time.Sleep(700 * time.Millisecond) // what is sent again belongs to it
		}
		fmt.Printf("%q %d %d %d\n", way, count[0], count[1], count[2])
	}
	_ = errors.Join(c.Close(), behind.Close())
	os.Exit(0)
}

// openTunnel makes an interface with a route and counts what is sent by it with
// a TCP segment or a datagram in it.
func openTunnel() (*atomic.Int32, error) {
	if err := gateway.RaiseLoopback(); err != nil {
		return nil, err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	req, _ := unix.NewIfreq(tunnel)
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return nil, err
	}
	for _, args := range []string{"addr add 10.99.0.1/24 dev tun0", "addr add fd99::1/64 dev tun0 nodad", "link set tun0 up"} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip %s: %w %s", args, err, out)
		}
	}
	var packets atomic.Int32
	go func() {
		buf := make([]byte, 65536)
		for {
			n, err := unix.Read(fd, buf)
			if err != nil {
				return
			}
			if carries(buf[:n]) {
				packets.Add(1)
			}
		}
	}()
	return &packets, nil
}

func carries(b []byte) bool {
	const routing = 43
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		return b[9] == unix.IPPROTO_TCP || b[9] == unix.IPPROTO_UDP
	case len(b) >= 40 && b[0]>>4 == 6:
		return b[6] == unix.IPPROTO_TCP || b[6] == routing
	}
	return bytes.Contains(b, []byte("out of the sandbox"))
}

// TestListenNeedsTheBrokersBind: a socket that got its address by connecting
// could lose it between the broker's look and the listen, by a disconnect in
// another thread, and would then listen on every interface.
func TestListenNeedsTheBrokersBind(t *testing.T) {
	p := newPlace(t)
	exe, err := os.Executable()
	must(t, err)
	free := p.do(t, nil, []string{probeVar + "=disconnect"}, exe)
	if free.err != nil {
		t.Fatalf("unconfined it does not work, so it proves nothing: %v %s", free.err, free.out)
	}
	for name, without := range map[string]kernel.Missing{"here": {}, "no duplicates": {GetFD: true}, "landlock 1": {LandlockAbove: 1}} {
		t.Run(name, func(t *testing.T) {
			c := confiner(t, p.policy(), without)
			if r := p.do(t, c, []string{probeVar + "=disconnect"}, exe); r.err == nil {
				t.Errorf("it listens on every interface: %s", r.out)
			}
		})
	}
}

// listenDisconnected races disconnecting a connected socket against listening
// with it, and gets out when the socket listens on other than loopback.
func listenDisconnected() error {
	target, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(target, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(target, 128); err != nil {
		return err
	}
	to, err := unix.Getsockname(target)
	if err != nil {
		return err
	}
	for range 200 {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if unix.Connect(s, to) == nil {
			go func() {
				unspec := [16]byte{}
				_ = syscallErr(unix.SYS_CONNECT, uintptr(s), ptr(&unspec), 16)
			}()
			for range 50 {
				if unix.Listen(s, 1) == nil {
					if err := onLoopback(s); err == nil {
						return nil
					}
					break
				}
			}
		}
		unix.Close(s)
		if a, _, err := unix.Accept(target); err == nil {
			unix.Close(a)
		}
	}
	return unix.EAGAIN
}
