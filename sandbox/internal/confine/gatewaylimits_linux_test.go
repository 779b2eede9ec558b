//go:build amd64 || arm64

package confine

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/gateway"
	"golang.org/x/net/dns/dnsmessage"
)

// withSpare has gateways listen on so many ports that no rule names.
func withSpare(t *testing.T, most int) {
	real := gateway.MostSpare
	gateway.MostSpare = most
	t.Cleanup(func() { gateway.MostSpare = real })
}

func portAfter(where string, n int) string {
	at := netip.MustParseAddrPort(where)
	return netip.AddrPortFrom(at.Addr(), at.Port()+uint16(n)).String()
}

// visitCrowd goes to many ports while it has a connection, and uses that in the end.
func visitCrowd(where string) (string, error) {
	conn, err := net.Dial("tcp", where)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	for n := range 40 {
		if _, err := greet(net.Dialer{}, "tcp", portAfter(where, n+1)); err != nil {
			return "", fmt.Errorf("port %d: %w", n, err)
		}
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		return "", err
	}
	b, err := io.ReadAll(conn)
	return strings.TrimSpace(string(b)), err
}

// visitFull has a connection on eight ports, and wants a ninth.
func visitFull(where string) (string, error) {
	for n := range 8 {
		conn, err := net.Dial("tcp", portAfter(where, n))
		if err != nil {
			return "", fmt.Errorf("port %d: %v", n, err)
		}
		defer conn.Close()
	}
	return greet(net.Dialer{}, "tcp", portAfter(where, 8))
}

// visitPackets tells whether what asks for a port comes again and again.
func visitPackets(where string) (string, error) {
	if _, err := greet(net.Dialer{}, "tcp", where); err != nil {
		return "", err
	}
	time.Sleep(200 * time.Millisecond)
	b, err := os.ReadFile("/proc/self/net/dev")
	for line := range strings.Lines(string(b)) {
		var count [16]int
		if f := strings.Fields(line); len(f) == 17 && f[0] == gateway.WayName+":" {
			for i := range count {
				_, _ = fmt.Sscan(f[i+1], &count[i])
			}
			if count[9] > 500 {
				return "", fmt.Errorf("%d packets", count[9])
			}
			return "few", nil
		}
	}
	return "", fmt.Errorf("no counts: %v", err)
}

// askFlooded asks for a name while the server looks many up.
func askFlooded(server string) (string, error) {
	conn, err := net.Dial("udp", server)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	for n := range 200 {
		query := dnsmessage.Message{Questions: []dnsmessage.Question{{
			Name: dnsmessage.MustNewName(fmt.Sprintf("n%d.slow.example.", n)), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
		b, err := query.Pack()
		if err != nil {
			return "", err
		}
		if _, err := conn.Write(b); err != nil {
			return "", err
		}
	}
	return lookUp("udp", server+" evil.example")
}

// askHeld asks for a name after many connections which ask for nothing.
func askHeld(server string) (string, error) {
	for range 200 {
		conn, err := net.Dial("tcp", server)
		if err != nil {
			return "", err
		}
		defer conn.Close()
	}
	return lookUp("tcp", server+" evil.example")
}

// TestGatewayKeepsConnections: what is in use is not closed for others.
func TestGatewayKeepsConnections(t *testing.T) {
	withSpare(t, 8)
	p := newPlace(t)
	i, gate := p.gated(t, &internet{}, "203.0.113.8:*,[2001:db8::8]:*")
	p.wantVisits(t, i, [][2]string{
		{"packets 203.0.113.8:9000", "few"},
		{"crowd 203.0.113.8:9999", "hello from 203.0.113.8:9999"},
		{"crowd [2001:db8::8]:9999", "hello from [2001:db8::8]:9999"},
	})
	idle := func() {
		eventually(t, "connections are still open", func() bool {
			i.Way.Mu.Lock()
			defer i.Way.Mu.Unlock()
			return len(i.Way.Open) == 0
		})
	}
	for _, to := range []string{"203.0.113.8:7000", "[2001:db8::8]:7100"} {
		idle()
		p.wantVisits(t, i, [][2]string{{"full " + to, "ECONNREFUSED"}})
	}
	said := strings.Join(gate.Refusals(0), "\n")
	for _, to := range []string{"203.0.113.8:7008", "[2001:db8::8]:7108"} {
		if !strings.Contains(said, to+" (too many connections") {
			t.Errorf("nothing of %s: %q", to, said)
		}
	}
	idle()
	p.wantVisits(t, i, [][2]string{{"tcp 203.0.113.8:7200", "hello from 203.0.113.8:7200"}})
}

// TestGatewayNamesGoOn: questions that need no lookup are answered whatever others do.
func TestGatewayNamesGoOn(t *testing.T) {
	p := newPlace(t)
	i, _ := p.gated(t, &internet{}, "*.slow.example")
	p.wantVisits(t, i, [][2]string{
		{"flooded 8.8.8.8:53", "RCodeNameError"},
		{"held 8.8.8.8:53", "RCodeNameError"},
	})
}

// TestGatewayForgets: the ways to addresses that the gate forgets end, and no other.
func TestGatewayForgets(t *testing.T) {
	p := newPlace(t)
	i, gate := p.gated(t, &internet{}, "203.0.113.7:443,*.many.example")
	ask := func(n int) {
		query := dnsmessage.Message{Questions: []dnsmessage.Question{{
			Name: dnsmessage.MustNewName(fmt.Sprintf("n%d.many.example.", n)), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
		b, err := query.Pack()
		must(t, err)
		if gate.Answer(context.Background(), b, 0) == nil {
			t.Fatal("no answer")
		}
	}
	count := func() int {
		i.Way.Mu.Lock()
		defer i.Way.Mu.Unlock()
		return len(i.Way.Reached)
	}
	ask(0)
	ask(1)
	used := netip.MustParsePrefix("8.1.0.1/32")
	i.Way.Mu.Lock()
	way := i.Way.Reached[used]
	way.Live++
	i.Way.Mu.Unlock()
	for n := 2; n < 4200; n++ {
		ask(n)
	}
	if n := count(); n != 4096+2 {
		t.Errorf("there are ways to %d addresses", n)
	}
	visits := [][2]string{
		{"tcp 8.1.0.0:443", "ENETUNREACH"},
		{"tcp 8.1.16.103:443", "hello from 8.1.16.103:443"},
		{"tcp 203.0.113.7:443", "hello from 203.0.113.7:443"},
	}
	p.wantVisits(t, i, append(slices.Clone(visits), [2]string{"tcp 8.1.0.1:443", "ECONNRESET"}))
	i.Way.Mu.Lock()
	way.Live--
	i.Way.GiveUp(used, way)
	i.Way.Mu.Unlock()
	if n := count(); n != 4096+1 {
		t.Errorf("there are ways to %d addresses at last", n)
	}
	p.wantVisits(t, i, append(visits, [2]string{"tcp 8.1.0.1:443", "ENETUNREACH"}))
}

// TestGatewayResetsTheRest: what there is no room for does not wait, and a port whose
// waiting connections were dropped is as it was.
func TestGatewayResetsTheRest(t *testing.T) {
	p := newPlace(t)
	i, _ := p.gated(t, &internet{}, "203.0.113.7:443")
	for range cap(i.Way.Relays) {
		i.Way.Relays <- struct{}{}
	}
	p.wantVisits(t, i, [][2]string{{"tcp 203.0.113.7:443", "ECONNRESET"}})
	for range cap(i.Way.Relays) {
		<-i.Way.Relays
	}
	i.Way.Mu.Lock()
	port := i.Way.Ports[443]
	i.Way.Mu.Unlock()
	i.Way.DropWaiting(port)
	p.wantVisits(t, i, [][2]string{{"many 203.0.113.7:443", "all"}})
}
