package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer is a real server of DNS on loopback, and the host's kind of resolver for it.
func nameServer(t *testing.T, answer func(q dnsmessage.Question, m *dnsmessage.Message)) Resolver {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			answer(m.Questions[0], &m)
			if packed, err := m.Pack(); err == nil {
				_, _ = conn.WriteToUDPAddrPort(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func TestTheHostsResolverIsUnderstood(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	resolver := nameServer(t, func(q dnsmessage.Question, m *dnsmessage.Message) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, q.Name.String())
		header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}
		switch {
		case q.Name.String() == "missing.example.":
			m.RCode = dnsmessage.RCodeNameError
		case q.Name.String() == "broken.example.":
			m.RCode = dnsmessage.RCodeServerFailure
		case q.Name.String() == "alias.example." && q.Type == dnsmessage.TypeA:
			other := dnsmessage.MustNewName("edge.cdn.test.")
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.CNAMEResource{CNAME: other}})
			header.Name = other
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: [4]byte{198, 51, 100, 7}}})
		case q.Type == dnsmessage.TypeAAAA && q.Name.String() == "six.example.":
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr("2606:4700::6").As16()}})
		}
	})
	g := testGate(t, "*.example", nil, func(c *Config) { c.Resolver = resolver })
	for _, c := range []struct {
		name  string
		qtype uint16
		code  dnsmessage.RCode
		addrs string
	}{
		{"alias.example.", 1, 0, "[198.51.100.7]"}, {"alias.example.", 28, 0, "[]"}, {"six.example.", 28, 0, "[2606:4700::6]"}, {"six.example.", 1, 0, "[]"},
		{"missing.example.", 1, dnsmessage.RCodeNameError, "[]"}, {"broken.example.", 1, dnsmessage.RCodeServerFailure, "[]"},
	} {
		if got := ask(t, g, c.name, c.qtype); got.code != c.code || fmt.Sprint(got.addrs) != c.addrs {
			t.Errorf("%s %d: %v %v", c.name, c.qtype, got.code, got.addrs)
		}
	}
	if !admit(t, g, "198.51.100.7:443").Allowed {
		t.Error("the end of an alias is not reached")
	}
	got := g.Refusals(0)
	if len(got) != 1 || !strings.HasPrefix(got[0], "blocked by the sandbox: network to broken.example (the server's own resolver does not answer: ") {
		t.Error(got)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, name := range asked {
		if strings.Count(name, ".") != 2 {
			t.Errorf("a search domain was tried: %s", name)
		}
	}
}

func TestAResolverThatIsDown(t *testing.T) {
	gone, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	g := testGate(t, "a.example", nil, func(c *Config) {
		c.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("udp", gone.LocalAddr().String())
		}}
	})
	if got := ask(t, g, "a.example.", 1); got.code != dnsmessage.RCodeServerFailure {
		t.Error(got.code)
	}
	if got := g.Refusals(0); len(got) != 1 || !strings.Contains(got[0], "the server's own resolver does not answer") {
		t.Error(got)
	}
}

func TestAResolverThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Config{Rules: mustParse(t, "*.example"), Resolver: &zone{wait: make(chan struct{})}})
		defer g.Close()
		start := time.Now()
		if got := ask(t, g, "a.example.", 1); got.code != dnsmessage.RCodeServerFailure || time.Since(start) != lookupTime {
			t.Error(got.code, time.Since(start))
		}
		if got := g.Refusals(0); len(got) != 1 || !strings.Contains(got[0], "the server's own resolver does not answer") {
			t.Error(got)
		}
	})
}

// TestEtcHostsIsHonoured asks the resolver that gates have for the names that this
// host's own file has.
func TestEtcHostsIsHonoured(t *testing.T) {
	f, err := os.Open(hostsFile)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	resolver := NewGate(Config{}).cfg.Resolver.(*hostResolver)
	resolver.Dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("nobody else is asked")
	}
	eachHost(f, func(name string, addr netip.Addr) {
		network := "ip6"
		if addr.Is4() {
			network = "ip4"
		}
		if f := resolve(t.Context(), resolver, asked{network, name}); !slices.Contains(f.addrs, addr) {
			t.Errorf("%s %s: %+v", addr, name, f)
		}
	})
	if f := resolve(t.Context(), resolver, asked{"ip4", "none"}); f.err == nil {
		t.Error(f)
	}
}

func TestEqualLookupsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{of: map[string][]string{"a.example.": {"198.51.100.1"}}, wait: make(chan struct{})}
		g := NewGate(Config{Rules: mustParse(t, "a.example"), Resolver: z, Dial: dial})
		defer g.Close()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if got := ask(t, g, "a.example.", 1); len(got.addrs) != 1 {
					t.Error(got)
				}
			})
		}
		synctest.Wait()
		close(z.wait)
		all.Wait()
		if z.count() != 1 {
			t.Error("the resolver was asked", z.count(), "times")
		}
		time.Sleep(20 * time.Second)
		if got := ask(t, g, "a.example.", 1); z.count() != 1 || got.Answers[0].Header.TTL != 40 {
			t.Error("it was asked", z.count(), "times, and the answer lives", got.Answers[0].Header.TTL)
		}
		time.Sleep(40 * time.Second)
		if got := ask(t, g, "a.example.", 1); z.count() != 2 || got.Answers[0].Header.TTL != 60 {
			t.Error("it was asked", z.count(), "times, and the answer lives", got.Answers[0].Header.TTL)
		}
	})
}

func TestLookupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{of: map[string][]string{}, wait: make(chan struct{})}
		g := NewGate(Config{Rules: mustParse(t, "*.example"), Resolver: z, Dial: dial})
		defer g.Close()
		var all sync.WaitGroup
		for i := range lookupsMost + 10 {
			z.of[fmt.Sprintf("n%d.example.", i)] = []string{"198.51.100.1"}
		}
		for i := range lookupsMost {
			all.Go(func() { ask(t, g, fmt.Sprintf("n%d.example.", i), 1) })
		}
		synctest.Wait()
		if z.count() != lookupsAtOnce {
			t.Error(z.count(), "lookups at once")
		}
		start := time.Now()
		if got := ask(t, g, "one.example.", 1); got.code != dnsmessage.RCodeServerFailure || time.Since(start) != 0 {
			t.Error("one more was not turned away at once:", got.code)
		}
		wantRefusals(t, g, 0, "one.example (too many names are being looked up; try again)")
		close(z.wait)
		all.Wait()
		for i := range 10 {
			ask(t, g, fmt.Sprintf("n%d.example.", lookupsMost+i), 1)
		}
		if n := len(g.lookups.known); n != answersKept {
			t.Error(n, "answers are kept")
		}
	})
}

func TestCloseEndsLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Config{Rules: mustParse(t, "*.example"), Resolver: &zone{wait: make(chan struct{})}})
		done := make(chan []byte)
		go func() { done <- g.Answer(t.Context(), query(t, "a.example.", 1), 0) }()
		synctest.Wait()
		g.Close()
		if answer := <-done; answer != nil || g.Answer(t.Context(), query(t, "a.example.", 1), 0) != nil || len(g.Refusals(0)) != 0 {
			t.Error("a closed gate answers")
		}
	})
}

func TestRouted(t *testing.T) {
	if !routed(netip.MustParseAddr("127.0.0.1")) || routed(netip.MustParseAddr("fe80::1")) { // without its interface nobody knows where that is
		t.Error("there is no way to loopback, or one to everywhere")
	}
}

// TestGatesTogetherAskBounded: many sessions whose resolver is slow hold few lookups.
func TestGatesTogetherAskBounded(t *testing.T) {
	z := &zone{wait: make(chan struct{}), of: map[string][]string{}}
	var asking sync.WaitGroup
	for range 2 * lookupsOfAll / lookupsAtOnce {
		g := testGate(t, "*.example", z)
		for i := range 2 * lookupsAtOnce {
			asking.Go(func() { g.find(t.Context(), asked{"ip4", fmt.Sprintf("a%d.example", i)}) })
		}
	}
	for len(resolving) < lookupsOfAll || z.count() < lookupsOfAll {
		time.Sleep(time.Millisecond)
	}
	if n := z.count(); n != lookupsOfAll {
		t.Errorf("%d are asked at once", n)
	}
	close(z.wait)
	asking.Wait()
}
