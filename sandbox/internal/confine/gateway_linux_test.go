//go:build amd64 || arm64

package confine

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/gateway"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// An internet is the internet outside of a session, in which every address is a server that
// tells how it was called.
type internet struct {
	mu     sync.Mutex
	dialed []string
	asked  []string
	names  map[string]string
}

func (o *internet) dial(_ context.Context, to netip.AddrPort) (net.Conn, error) {
	o.mu.Lock()
	o.dialed = append(o.dialed, to.String())
	o.mu.Unlock()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	conn, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		return nil, err
	}
	served, err := l.Accept()
	if err != nil {
		conn.Close()
		return nil, err
	}
	go func() {
		defer served.Close()
		line, _ := bufio.NewReader(served).ReadString('\n')
		fmt.Fprintf(served, "%s from %s\n", strings.TrimSpace(line), to)
	}()
	return conn, nil
}

func (o *internet) LookupNetIP(ctx context.Context, by, host string) ([]netip.Addr, error) {
	host = strings.TrimSuffix(host, ".")
	var n int
	switch of, domain, _ := strings.Cut(host, "."); domain {
	case "slow.example":
		<-ctx.Done()
		return nil, ctx.Err()
	case "many.example":
		if _, err := fmt.Sscanf(of, "n%d", &n); err == nil && by == "ip4" {
			return []netip.Addr{netip.AddrFrom4([4]byte{8, 1, byte(n >> 8), byte(n)})}, nil
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, host)
	a, err := netip.ParseAddr(o.names[host])
	if err != nil || by == "ip4" && !a.Is4() || by == "ip6" && a.Is4() {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{a}, nil
}

// gated is an isolator with a gate of these rules into the internet internet.
func (p place) gated(t testing.TB, o *internet, rules string) (*namespaces.Isolator, *network.Gate) {
	t.Helper()
	parsed, err := network.Parse(rules)
	must(t, err)
	gate := network.NewGate(network.Config{Rules: parsed, Resolver: o, Dial: o.dial})
	i, err := namespaces.New(namespaces.Isolation{Policy: p.policy(), Workspace: p.ws, Guard: true, Gate: gate, Lacks: lacking})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { gate.Close(); must(t, i.Close()) })
	return i, gate
}

// wantVisits makes a command go to the places and compares how it went.
func (p place) wantVisits(t *testing.T, i *namespaces.Isolator, want [][2]string) {
	t.Helper()
	var list, wanted []string
	for _, w := range want {
		list, wanted = append(list, w[0]), append(wanted, w[0]+": "+w[1])
	}
	exe, err := os.Executable()
	must(t, err)
	out, c := p.begin(t, i, []string{visitsVar + "=" + strings.Join(list, "\n")}, exe)
	var got []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		got = append(got, lines.Text())
	}
	must(t, c.Kill())
	<-c.Done()
	for n, w := range wanted {
		if n >= len(got) || got[n] != w {
			t.Errorf("got  %s\nwant %s", slices.Concat(got, make([]string, len(wanted)))[n], w)
		}
	}
}

// TestGateway: commands reach what the rules name, by the addresses it really has, and
// nothing else.
func TestGateway(t *testing.T) {
	p, o := newPlace(t), &internet{names: map[string]string{"allowed.example": "198.51.100.7", "six.example": "2001:db8::7", "any.example": "198.51.100.9"}}
	i, _ := p.gated(t, o, "203.0.113.7:443,[2001:db8::1]:443,203.0.113.0/28:5432,allowed.example,six.example,any.example:*")
	p.wantVisits(t, i, [][2]string{
		{"tcp 203.0.113.7:443", "hello from 203.0.113.7:443"},
		{"tcp 203.0.113.9:5432", "hello from 203.0.113.9:5432"},
		{"tcp [2001:db8::1]:443", "hello from [2001:db8::1]:443"},
		{"mapped 203.0.113.7:443", "hello from 203.0.113.7:443"},
		{"tcp 203.0.113.7:80", "ENETUNREACH"},
		{"tcp 203.0.113.8:443", "ENETUNREACH"},
		{"tcp [2001:db8::2]:443", "ENETUNREACH"},
		{"mapped 203.0.113.8:443", "ENETUNREACH"},
		{"udp 203.0.113.7:443", "ENETUNREACH"},
		{"udp [2001:db8::1]:443", "ENETUNREACH"},
		{"udp 8.8.8.8:123", "ENETUNREACH"},
		{"tcp 198.51.100.7:443", "ENETUNREACH"},
		{"names 8.8.8.8:53 allowed.example", "198.51.100.7"},
		{"names-by 8.8.4.4:53 allowed.example", "198.51.100.7"},
		{"names [2001:4860:4860::8888]:53 allowed.example", "198.51.100.7"},
		{"names 8.8.8.8:53 evil.example", "RCodeNameError"},
		{"tcp 198.51.100.7:443", "hello from 198.51.100.7:443"},
		{"tcp 198.51.100.7:80", "hello from 198.51.100.7:80"},
		{"tcp 198.51.100.7:8080", "ENETUNREACH"},
		{"tcp 198.51.100.9:7777", "ENETUNREACH"},
		{"names 8.8.8.8:53 any.example", "198.51.100.9"},
		{"tcp 198.51.100.9:7777", "hello from 198.51.100.9:7777"},
		{"tcp 198.51.100.9:7777", "hello from 198.51.100.9:7777"},
		{"tcp 198.51.100.9:443", "hello from 198.51.100.9:443"},
		{"many 203.0.113.7:443", "all"},
		{"served 127.0.0.1:5432", "mine"},
		{"served [::1]:5432", "mine"},
		{"fds all", "[]"},
	})
	if kept, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", i.Keeper.PID)); err == nil && len(kept) != 1 {
		t.Errorf("the keeper has %v open", kept)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Contains(o.asked, "evil.example") {
		t.Errorf("questions went out: %q", o.asked)
	}
}

// TestGatewayIsTheOnlyWay: no option of a socket leads past it.
func TestGatewayIsTheOnlyWay(t *testing.T) {
	p, o := newPlace(t), &internet{}
	i, _ := p.gated(t, o, "203.0.113.7:443")
	p.wantVisits(t, i, [][2]string{
		{"tcp 203.0.113.7:443", "hello from 203.0.113.7:443"},
		{"device 203.0.113.7:443", "hello from 203.0.113.7:443"},
		{"device 203.0.113.8:80", "EHOSTUNREACH"},
		{"device [2001:db8::2]:80", "ENETUNREACH"},
		{"device 203.0.113.8:443", "ECONNRESET"},
		{"device 192.0.0.1:443", "ECONNRESET"},
		{"device 192.0.0.1:80", "ECONNREFUSED"},
		{"loopback 203.0.113.8:443", "ENETUNREACH"},
		{"loopback 203.0.113.7:443", "ENETUNREACH"},
		{"tcp 192.0.0.1:443", "ENETUNREACH"},
		{"tcp [fd70:6261:7365::1]:443", "ENETUNREACH"},
		{"tcp [fe80::1%way]:443", "ENETUNREACH"},
		{"unroute 203.0.113.8:443", "ENETUNREACH"},
		{"unicast-if 203.0.113.8:443", "ENETUNREACH"},
		{"mark 203.0.113.8:443", "EPERM"},
		{"transparent 203.0.113.8:443", "EPERM"},
		{"raw any", "EACCES"},
		{"packet any", "EACCES"},
		{"route any", "EPERM"},
		{"rule any", "EPERM"},
		{"udp 255.255.255.255:67", "ENETUNREACH"},
		{"udp 224.0.0.251:5353", "ENETUNREACH"},
		{"udp [ff02::fb%way]:5353", "ENETUNREACH"},
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, to := range o.dialed {
		if to != "203.0.113.7:443" {
			t.Errorf("it got to %s", to)
		}
	}
}

// TestGatewayWithoutIPv6: where the kernel has none, IPv4 works as ever.
func TestGatewayWithoutIPv6(t *testing.T) {
	withLacks(t, namespaces.Lacks{Lacks: gateway.Lacks{IPv6: true}})
	p, o := newPlace(t), &internet{names: map[string]string{"allowed.example": "198.51.100.7", "six.example": "2001:db8::7", "any.example": "198.51.100.9"}}
	i, _ := p.gated(t, o, "203.0.113.7:443,[2001:db8::1]:443,allowed.example,six.example,any.example:*")
	p.wantVisits(t, i, [][2]string{
		{"tcp 203.0.113.7:443", "hello from 203.0.113.7:443"},
		{"mapped 203.0.113.7:443", "hello from 203.0.113.7:443"},
		{"tcp 203.0.113.7:80", "ENETUNREACH"},
		{"tcp [2001:db8::1]:443", "ENETUNREACH"},
		{"names 8.8.8.8:53 allowed.example", "198.51.100.7"},
		{"names-by 8.8.8.8:53 any.example", "198.51.100.9"},
		{"tcp 198.51.100.7:443", "hello from 198.51.100.7:443"},
		{"tcp 198.51.100.9:7777", "hello from 198.51.100.9:7777"},
	})
}

// TestGatewayCannotBeMade: then there is no session, and the error says what is missing.
func TestGatewayCannotBeMade(t *testing.T) {
	p := newPlace(t)
	p.gated(t, &internet{}, "203.0.113.7:443") // or it is skipped
	withLacks(t, namespaces.Lacks{Lacks: gateway.Lacks{Veth: true}})
	gate := network.NewGate(network.Config{})
	defer gate.Close()
	i, err := namespaces.New(namespaces.Isolation{Policy: p.policy(), Workspace: p.ws, Gate: gate, Lacks: lacking})
	if err == nil {
		i.Close()
		t.Fatal("it was made")
	}
	if !strings.Contains(err.Error(), "module veth") || !strings.Contains(err.Error(), "--sandbox landlock") {
		t.Error(err)
	}
}

// TestGatewayStatus: what the self-test proves of the network.
func TestGatewayStatus(t *testing.T) {
	for rules, want := range map[string]string{
		"203.0.113.7:443": "198.51.100.1:9, which no rule of --network names: network is unreachable",
		"198.51.100.0/24": "203.0.113.1:9, which no rule of --network names: network is unreachable",
		"0.0.0.0/0:*":     "connect to a port of the server: connection refused",
	} {
		i, _ := newPlace(t).gated(t, &internet{}, rules)
		if s := i.Status(); !s.Enforced() || !strings.HasSuffix(s.Network.Detail, want) {
			t.Errorf("%s: %+v", rules, s.Network)
		}
	}
}

// TestNameServer: programs ask one that they can reach.
func TestNameServer(t *testing.T) {
	p := newPlace(t)
	i, _ := p.gated(t, &internet{names: map[string]string{"allowed.example": "198.51.100.7"}}, "203.0.113.7:443,allowed.example")
	if _, err := exec.LookPath("getent"); err == nil {
		if out, _ := p.inSh(t, i, "getent ahostsv4 allowed.example | head -1"); !strings.HasPrefix(out, "198.51.100.7") {
			t.Errorf("the C library: %q", out)
		}
	}
	if out, _ := p.inSh(t, i, "grep -c . "+namespaces.ResolvConf+"; grep ^nameserver "+namespaces.ResolvConf+"; (echo > "+namespaces.ResolvConf+") 2>/dev/null || echo kept; ls -A / | grep resolv"); !strings.HasSuffix(out, "nameserver 192.0.0.1\nkept\n") {
		t.Errorf("%q", out)
	}
	text := gateway.NameServers("# mine\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch corp.example")
	if want := "options edns0 trust-ad\nsearch corp.example\nnameserver 192.0.0.1\n"; text != want {
		t.Errorf("%q", text)
	}
}

// TestGatewayEnds: with its session, and so does what it carries.
func TestGatewayEnds(t *testing.T) {
	p := newPlace(t)
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(entries)
	}
	p.gated(t, &internet{}, "203.0.113.7:443")
	files, routines := count(), runtime.NumGoroutine()
	hung := make(chan struct{})
	for range 6 {
		var once sync.Once
		parsed, err := network.Parse("203.0.113.7:443,203.0.113.8:*")
		must(t, err)
		gate := network.NewGate(network.Config{Rules: parsed, Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			once.Do(func() { hung <- struct{}{} })
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		i, err := namespaces.New(namespaces.Isolation{Policy: p.policy(), Workspace: p.ws, Gate: gate, Lacks: lacking})
		must(t, err)
		exe, err := os.Executable()
		must(t, err)
		out, c := p.begin(t, i, []string{visitsVar + "=patient 203.0.113.8:7777"}, exe)
		<-hung
		must(t, i.Close())
		gate.Close()
		<-c.Done()
		out.Close()
	}
	eventually(t, "descriptors or goroutines are left", func() bool {
		return count() <= files+5 && runtime.NumGoroutine() <= routines+5 // fewer than one of each for each session
	})
}
