//go:build amd64 || arm64

package confine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/listeners"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

func init() {
	probeTable["reach"] = escape{try: reach}
	probeTable["names"] = escape{try: askForNames}
	probeTable["datagrams"] = escape{try: sendDatagrams}
	probeTable["options"] = escape{try: setOptions}
	probeTable["bindfirst"] = escape{try: bindFirst}
	probeTable["crowd"] = escape{try: connectCrowd}
}

// A book is a resolver that knows what is in it, and notes what it is asked.
type book struct {
	of map[string]string

	mu    sync.Mutex
	asked []string
}

func (b *book) LookupNetIP(_ context.Context, version, host string) (found []netip.Addr, err error) {
	host = strings.TrimSuffix(host, ".")
	b.mu.Lock()
	b.asked = append(b.asked, host)
	b.mu.Unlock()
	for a := range strings.FieldsSeq(b.of[host]) {
		if ip := netip.MustParseAddr(a); version == "ip" || ip.Is4() == (version == "ip4") {
			found = append(found, ip)
		}
	}
	if found == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return found, nil
}

// gated is a confiner whose commands reach what the rules name.
func gated(t testing.TB, p place, rules string, names *book, without kernel.Missing) (*threads.Confiner, *network.Gate) {
	t.Helper()
	r, err := network.Parse(rules)
	must(t, err)
	g := network.NewGate(network.Config{Rules: r, Resolver: names})
	t.Cleanup(g.Close)
	c, err := threads.NewWithout(p.policy(), threads.Options{Gate: g}, without)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, g
}

// wantBlocked fails unless the gate says that it has refused what.
func wantBlocked(t *testing.T, g *network.Gate, what string) {
	t.Helper()
	if all := strings.Join(g.Refusals(0), "\n"); !strings.Contains(all, what) {
		t.Errorf("no refusal of %q in:\n%s", what, all)
	}
}

// ownAddress is one of this machine that is not loopback's.
func ownAddress(t testing.TB, is4 bool) netip.Addr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().Is4() == is4 && p.Addr().IsGlobalUnicast() {
			return p.Addr()
		}
	}
	t.Skip("this machine has no address of its own but loopback")
	return netip.Addr{}
}

func listenAt(t testing.TB, ip netip.Addr) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(ip, 0).String())
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); _, _ = conn.Write([]byte("hello")) }()
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

func sockaddrOf(to netip.AddrPort) (int, unix.Sockaddr) {
	if to.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Addr: to.Addr().As16(), Port: int(to.Port())}
}

// reach connects to each address of PROBE_TO, and prints what it got.
func reach() error {
	for to := range strings.FieldsSeq(os.Getenv("PROBE_TO")) {
		family, sa := sockaddrOf(netip.MustParseAddrPort(to))
		s, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		got := "hello"
		if err := unix.Connect(s, sa); err != nil {
			got = err.Error()
		} else if n, err := unix.Read(s, []byte("12345")); err != nil || n != 5 {
			got = fmt.Sprint(n, err)
		}
		fmt.Printf("%s: %s\n", to, got)
		unix.Close(s)
	}
	return nil
}

// TestOutward: commands connect to where the gate lets them and nowhere else,
// whatever form an address has.
func TestOutward(t *testing.T) {
	for name, without := range map[string]kernel.Missing{"here": {}, "no duplicates": {GetFD: true}, "landlock 1": {LandlockAbove: 1}} {
		t.Run(name, func(t *testing.T) { tryOutward(t, without) })
	}
}

func tryOutward(t *testing.T, without kernel.Missing) {
	p := newPlace(t)
	exe, err := os.Executable()
	must(t, err)
	ip4 := ownAddress(t, true)
	named, unnamed, own := listenAt(t, ip4), listenAt(t, ip4), listenAt(t, ip4)
	loopback := listenAt(t, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	mapped := func(a netip.AddrPort) string {
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port()).String()
	}
	defer listeners.Own(net.TCPAddrFromAddrPort(own))()
	no, denied := unix.ENETUNREACH.Error(), unix.EACCES.Error()
	want := map[string]string{named.String(): "hello", mapped(named): "hello", unnamed.String(): no, mapped(unnamed): no,
		own.String(): denied, mapped(own): denied, loopback.String(): denied, mapped(loopback): denied,
		"192.0.2.255:80": no, "[2001:db8::1]:443": no, "224.0.0.1:80": no, "127.0.0.1:1": unix.ECONNREFUSED.Error(),
		fmt.Sprintf("[::%s]:%d", ip4, named.Port()): no, fmt.Sprintf("[64:ff9b::%s]:%d", ip4, named.Port()): no}
	rules := named.String() + "," + own.String()
	c, g := gated(t, p, rules, &book{}, without)
	var to []string
	for a := range want {
		to = append(to, a)
	}
	r := p.do(t, c, []string{probeVar + "=reach", "PROBE_TO=" + strings.Join(to, " ")}, exe)
	if r.err != nil {
		t.Fatal(r.err, r.out)
	}
	for a, what := range want {
		if !strings.Contains(r.out, a+": "+what+"\n") {
			t.Errorf("%s: wanted %q in\n%s", a, what, r.out)
		}
	}
	wantBlocked(t, g, unnamed.String())
	wantBlocked(t, g, "[2001:db8::1]")
	for _, f := range r.domain.Refusals() {
		if strings.Contains(f.What, unnamed.String()) {
			t.Errorf("told twice: %+v", f)
		}
	}
}

// bindFirst binds sockets to any address before they connect, listen or tell their port.
func bindFirst() error {
	to := netip.MustParseAddrPort(os.Getenv("PROBE_TO"))
	bound := func() (int, error) {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return s, errors.Join(err, unix.Bind(s, &unix.SockaddrInet4{}), wantErrno("bind again", unix.Bind(s, &unix.SockaddrInet4{}), unix.EINVAL))
	}
	out, err := bound()
	if err != nil {
		return err
	}
	_, sa := sockaddrOf(to)
	if err := unix.Connect(out, sa); err != nil {
		return fmt.Errorf("outward: %w", err)
	}
	for _, listens := range []bool{true, false} {
		s, err := bound()
		if err == nil && listens {
			err = unix.Listen(s, 1)
		}
		at, _ := kernel.LocalAddress(s)
		if err != nil || at.Port() == 0 || !at.Addr().IsLoopback() {
			return fmt.Errorf("it is at %s %w", at, err)
		}
		if !listens {
			if err := unix.Listen(s, 1); err != nil {
				return err
			}
		}
		if at, _ := kernel.LocalAddress(s); !at.Addr().IsLoopback() {
			return fmt.Errorf("it listens at %s", at)
		}
	}
	local, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return wantErrno("an address by a local socket", unix.Connect(local, sa), unix.EAFNOSUPPORT)
}

// TestBoundToAnyAddress: what programs do with such sockets behind a gate works, and
// nothing listens beyond loopback.
func TestBoundToAnyAddress(t *testing.T) {
	for name, without := range map[string]kernel.Missing{"here": {}, "no duplicates": {GetFD: true}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			exe, err := os.Executable()
			must(t, err)
			to := listenAt(t, ownAddress(t, true))
			c, _ := gated(t, p, to.String(), &book{}, without)
			if r := p.do(t, c, []string{probeVar + "=bindfirst", "PROBE_TO=" + to.String()}, exe); r.err != nil {
				t.Error(r.err, r.out)
			}
		})
	}
}

// TestOutward6 is TestOutward where the machine has such an address.
func TestOutward6(t *testing.T) {
	p := newPlace(t)
	exe, err := os.Executable()
	must(t, err)
	named, unnamed := listenAt(t, ownAddress(t, false)), listenAt(t, ownAddress(t, false))
	c, g := gated(t, p, named.String(), &book{}, kernel.Missing{})
	r := p.do(t, c, []string{probeVar + "=reach", "PROBE_TO=" + named.String() + " " + unnamed.String()}, exe)
	if want := named.String() + ": hello\n" + unnamed.String() + ": " + unix.ENETUNREACH.Error() + "\n"; r.out != want {
		t.Errorf("%q, not %q", r.out, want)
	}
	wantBlocked(t, g, unnamed.String())
}

// askForNames looks up each name of PROBE_NAMES as Go does.
func askForNames() error {
	r := &net.Resolver{PreferGo: true}
	for name := range strings.FieldsSeq(os.Getenv("PROBE_NAMES")) {
		found, err := r.LookupNetIP(context.Background(), "ip", name)
		var dns *net.DNSError
		if errors.As(err, &dns) {
			err = errors.New(dns.Err)
		}
		fmt.Printf("%s: %v %v\n", name, found, err)
	}
	return nil
}

// TestNames: what rules name has its addresses, by every resolver that is here; for the
// rest nobody outside is asked.
func TestNames(t *testing.T) {
	for name, without := range map[string]kernel.Missing{"here": {}, "no duplicates": {GetFD: true}} {
		t.Run(name, func(t *testing.T) { tryNames(t, without) })
	}
}

func tryNames(t *testing.T, without kernel.Missing) {
	p := newPlace(t)
	exe, err := os.Executable()
	must(t, err)
	names := &book{of: map[string]string{"one.example": "198.51.100.1", "two.example": "198.51.100.1 198.51.100.2 2001:4860::8", "evil.test": "198.51.100.3"}}
	c, g := gated(t, p, "*.example", names, without)
	r := p.do(t, c, []string{probeVar + "=names", "PROBE_NAMES=one.example two.example evil.test"}, exe)
	for _, want := range []string{"one.example: [198.51.100.1] <nil>", "198.51.100.2", "2001:4860::8", "evil.test: [] no such host"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in %s", want, r.out)
		}
	}
	wantBlocked(t, g, "evil.test")
	for command, want := range map[string]string{
		"getent ahostsv4 two.example": "198.51.100.2",
		// Several addresses: the C library connects to each to learn which suits. It fails an
		// assertion when it is told that its own address is of another family.
		`python3 -c 'import socket; print(len(socket.getaddrinfo("two.example", 443)), len(socket.getaddrinfo("two.example", 53)))'`:                                 "9 9",
		`python3 -c 'import socket; s = socket.create_connection(("198.51.100.9", 53), timeout=60); print(s.getpeername(), s.getsockname())'`:                        "('198.51.100.9', 53) ('127.0.0.1',",
		`node -e 'require("dns").resolve("one.example", (e, a) => console.log(e, a)); require("dns").resolve("evil.test", (e, a) => console.log(e.code, a))' | sort`: "ENOTFOUND undefined\nnull [ '198.51.100.1' ]",
		"busybox nslookup one.example": "198.51.100.1",
		"dig +short one.example":       "198.51.100.1", "dig +tcp +short @198.51.100.9 two.example AAAA": "2001:4860::8",
	} {
		if _, err := exec.LookPath(strings.Fields(command)[0]); err != nil {
			continue
		}
		if r := p.sh(t, c, command); !strings.Contains(r.out, want) {
			t.Errorf("%s: %s", command, r.out)
		}
	}
	for _, refusal := range g.Refusals(0) {
		if !strings.Contains(refusal, "evil.test") {
			t.Errorf("what was permitted is reported: %s", refusal)
		}
	}
	for _, name := range names.asked {
		if !strings.HasSuffix(name, ".example") {
			t.Errorf("%s has left the sandbox", name)
		}
	}
}
