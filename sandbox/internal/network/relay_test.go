package network

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// far is where commands of these tests want to go.
var far = netip.MustParseAddrPort("198.51.100.1:443")

// listen makes a server on loopback.
func listen(t testing.TB) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// connected returns both ends of a connection.
func connected(t testing.TB, l *net.TCPListener) (client, server *net.TCPConn) {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); server.Close() })
	return conn.(*net.TCPConn), server
}

// to has a gate dial a server of the test instead.
func to(l net.Listener) func(*Config) {
	return func(c *Config) {
		c.Dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", l.Addr().String())
		}
	}
}

// A relayed connection: a command's end, the server's end, and the end of Relay.
type relayed struct {
	command, server *net.TCPConn
	done            chan struct{}
}

func relay(t testing.TB, g *Gate, gateway, server *net.TCPListener) relayed {
	t.Helper()
	command, inside := connected(t, gateway)
	r := relayed{command: command, done: make(chan struct{})}
	go func() {
		g.Relay(t.Context(), inside, far)
		close(r.done)
	}()
	if server != nil {
		var err error
		if r.server, err = server.AcceptTCP(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.server.Close() })
	}
	return r
}

// through sends a byte, so that the relay is known to stand.
func through(t *testing.T, from, to net.Conn) {
	t.Helper()
	_, _ = from.Write([]byte("x"))
	if _, err := io.ReadFull(to, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func readAll(t *testing.T, conn net.Conn) string {
	t.Helper()
	data, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func wantReset(t *testing.T, what string, conn net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%s ends with %v", what, err)
	}
}

func TestRelayCarriesBothWaysAndHalfCloses(t *testing.T) {
	gateway, server := listen(t), listen(t)
	var out bytes.Buffer
	g := testGate(t, "198.51.100.1", &zone{}, to(server), func(c *Config) { c.Log = slog.New(slog.NewJSONHandler(&out, nil)) })
	r := relay(t, g, gateway, server)
	sent := make([]byte, 3<<20)
	_, _ = rand.Read(sent)
	go func() {
		_, _ = r.command.Write(sent)
		r.command.CloseWrite()
	}()
	if got := readAll(t, r.server); got != string(sent) {
		t.Error(len(got), "bytes came through")
	}
	_, _ = io.WriteString(r.server, "the answer comes after the end of the question")
	r.server.Close()
	if got := readAll(t, r.command); got != "the answer comes after the end of the question" {
		t.Errorf("%q", got)
	}
	<-r.done
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line["bytes_out"] != float64(len(sent)) || line["bytes_in"] != 46.0 || line["verdict"] != "allowed" || line["host"] != "198.51.100.1" || line["reason"] != "the address is permitted" {
		t.Error(out.String())
	}
}

func TestRelayHandsResetsOn(t *testing.T) {
	gateway, server := listen(t), listen(t)
	g := testGate(t, "198.51.100.1", &zone{}, to(server))
	r := relay(t, g, gateway, server)
	reset(r.server)
	wantReset(t, "a command whose server resets", r.command)
	<-r.done
	r = relay(t, g, gateway, server)
	reset(r.command)
	wantReset(t, "a server whose command resets", r.server)
	<-r.done
}

// TestRelayDeliversAnAnswerBeforeAReset is a server that does not want the rest of a
// request: it answers and closes, and its system resets what still comes.
func TestRelayDeliversAnAnswerBeforeAReset(t *testing.T) {
	gateway, server := listen(t), listen(t)
	g := testGate(t, "198.51.100.1", &zone{}, to(server))
	r := relay(t, g, gateway, server)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for {
			if _, err := r.command.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}()
	_, _ = r.server.Read(make([]byte, 1))
	_, _ = io.WriteString(r.server, "413 too much")
	r.server.Close()
	buf := make([]byte, 12)
	if _, err := io.ReadFull(r.command, buf); err != nil || string(buf) != "413 too much" {
		t.Errorf("%q %v", buf, err)
	}
	<-stop
	<-r.done
}

func TestRelayRefuses(t *testing.T) {
	gateway := listen(t)
	g := testGate(t, "a.example", &zone{}) // which fails to dial
	r := relay(t, g, gateway, nil)
	wantReset(t, "a refused connection", r.command)
	<-r.done
	wantRefusals(t, g, 0, "198.51.100.1:443 (start the server with --network 198.51.100.1 to permit it)")

	var out bytes.Buffer
	g = testGate(t, "198.51.100.1", &zone{}, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&out, nil)) })
	r = relay(t, g, gateway, nil)
	wantReset(t, "a connection that fails outside", r.command)
	<-r.done
	wantRefusals(t, g, 0)
	if !strings.Contains(out.String(), `verdict=allowed reason="the address is permitted; nobody is dialed in this test"`) {
		t.Error(out.String())
	}
}

func TestRelaysAreBoundedAndEndWithTheGate(t *testing.T) {
	gateway, server := listen(t), listen(t)
	before := runtime.NumGoroutine()
	g := testGate(t, "198.51.100.1", &zone{}, to(server))
	g.room = &room{size: func() int { return 4 * relaysAtOnce }}
	var all []relayed
	for range relaysAtOnce {
		all = append(all, relay(t, g, gateway, server))
	}
	for _, r := range all {
		through(t, r.command, r.server)
	}
	more := relay(t, g, gateway, nil)
	wantReset(t, "one connection too many", more.command)
	<-more.done
	wantRefusals(t, g, 0, "198.51.100.1:443 (too many connections at once; close some)")
	reset(all[0].command)
	<-all[0].done
	all[0] = relay(t, g, gateway, server)
	through(t, all[0].command, all[0].server)
	g.Close()
	for _, r := range all {
		wantReset(t, "a command of a closed gate", r.command)
		wantReset(t, "a server of a closed gate", r.server)
		<-r.done
	}
	late := relay(t, g, gateway, nil)
	wantReset(t, "a connection after the end", late.command)
	<-late.done
	goroutinesEnd(t, before)
}

// goroutinesEnd waits until there are no more goroutines than before.
func goroutinesEnd(t *testing.T, before int) {
	t.Helper()
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
}

func TestRelayEndsWithItsContext(t *testing.T) {
	gateway, server := listen(t), listen(t)
	g := testGate(t, "198.51.100.1", &zone{}, to(server))
	ctx, cancel := context.WithCancel(t.Context())
	command, inside := connected(t, gateway)
	done := make(chan struct{})
	go func() { g.Relay(ctx, inside, far); close(done) }()
	outside, err := server.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	through(t, command, outside)
	cancel()
	wantReset(t, "a command", command)
	wantReset(t, "a server", outside)
	<-done
}

func TestCloseEndsADial(t *testing.T) {
	gateway := listen(t)
	dialing := make(chan struct{})
	g := testGate(t, "198.51.100.1", &zone{}, func(c *Config) {
		c.Dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			close(dialing)
			<-ctx.Done() // a server that never answers
			return nil, ctx.Err()
		}
	})
	r := relay(t, g, gateway, nil)
	<-dialing
	g.Close()
	wantReset(t, "a command", r.command)
	<-r.done
}

func BenchmarkAdmit(b *testing.B) {
	for _, n := range []int{4, 1000} {
		b.Run(map[int]string{4: "4 rules", 1000: "1000 rules"}[n], func(b *testing.B) {
			g := NewGate(Config{Rules: manyRules(b, n), Resolver: &zone{}})
			defer g.Close()
			_ = g.reached.hand(far.Addr(), "host0.example", grant{ports: defaultPorts})
			for b.Loop() {
				if v, _ := g.verdict(far); !v.Allowed {
					b.Fatal(v)
				}
			}
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	for _, n := range []int{4, 1000} {
		b.Run(map[int]string{4: "4 rules", 1000: "1000 rules"}[n], func(b *testing.B) {
			g := testGate(b, strings.Join(manyRules(b, n).List(), ","), &zone{of: map[string][]string{"host0.example.": {"198.51.100.1"}}})
			for name, qtype := range map[string]uint16{"host0.example.": 1, "evil.example.": 1} {
				q := query(b, name, qtype)
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						if g.Answer(b.Context(), q, 512) == nil {
							b.Fatal("no answer")
						}
					}
				})
			}
		})
	}
}

// BenchmarkDownload compares a download through a relay with one without.
func BenchmarkDownload(b *testing.B) {
	const size = 256 << 20
	gateway, server := listen(b), listen(b)
	chunk := make([]byte, 1<<20)
	serve := func(conn *net.TCPConn) {
		for range size / len(chunk) {
			_, _ = conn.Write(chunk)
		}
		conn.Close()
	}
	take := func(b *testing.B, conn *net.TCPConn) {
		for buf, n := make([]byte, 1<<17), 0; n < size; {
			got, err := conn.Read(buf)
			if n += got; err != nil && n < size {
				b.Fatal(n, err)
			}
		}
		conn.Close()
	}
	b.Run("direct", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			client, conn := connected(b, server)
			go serve(conn)
			take(b, client)
		}
	})
	b.Run("relay", func(b *testing.B) {
		g := testGate(b, "198.51.100.1", &zone{}, to(server))
		b.SetBytes(size)
		for b.Loop() {
			r := relay(b, g, gateway, server)
			go serve(r.server)
			take(b, r.command)
			<-r.done
		}
	})
}
