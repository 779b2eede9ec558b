//go:build amd64 || arm64

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/selftest"
	"github.com/perstack-ai/perstack-base/sandbox/internal/netlink"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// A Gateway is the way out of a session's namespaces: a network namespace in which no
// process lives, joined with that of the commands alone. What a gate permits is led
// there, and there every address is the gateway's own: a command that connects is
// connected with us, who learn from our end whom it meant. All else finds no way out of
// the commands' namespace; were it to find one, it would be refused in the gateway, or
// by the gate, which judges every connection.
type Gateway struct {
	gate               *network.Gate
	commands, outer    netlinkSocket // of the commands' namespace, and of the gateway
	mint, client       int           // see newSocket
	names              *net.UDPConn
	framesSeen, replay int
	families           int // 2 with IPv6

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	Relays chan struct{} // room for connections
	asks   chan struct{} // for questions for names that have to be looked up
	askers chan struct{} // for connections that ask them

	Mu      sync.Mutex
	closed  bool
	Ports   map[uint16]*port
	Reached map[netip.Prefix]*Way
	spare   *spare // nil before the first address with every port
	Open    map[*net.TCPConn]*visitor
}

// The most that a session has at a time.
const (
	mostRelays  = 1024  // connections, more than the gate takes; others are reset
	mostAsked   = 64    // questions by UDP that have to be looked up; others are dropped
	mostAskers  = 64    // connections that ask for names; others take the place of an idle one
	mostWaiting = 4096  // connections at a port, which are not accepted yet
	mostReached = 65536 // addresses, more than the gate knows
)

// Open serves the gateway that the stage has made of these descriptors.
func Open(gate *network.Gate, made []int) (*Gateway, error) {
	if len(made) != Parts {
		closeDescriptors(made)
		return nil, fmt.Errorf("the stage has passed %d of %d descriptors", len(made), Parts)
	}
	g := &Gateway{gate: gate, commands: netlinkSocket(made[wayCommands]), outer: netlinkSocket(made[wayGateway]),
		mint: made[wayMint], client: made[wayClient], framesSeen: made[wayFrames], replay: made[wayAgain], families: 1,
		Relays: make(chan struct{}, mostRelays), asks: make(chan struct{}, mostAsked), askers: make(chan struct{}, mostAskers),
		Ports: map[uint16]*port{}, Reached: map[netip.Prefix]*Way{}, Open: map[*net.TCPConn]*visitor{}}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	if err := g.begin(made[wayNames]); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

func closeDescriptors(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

func (g *Gateway) begin(names int) error {
	family, err := unix.GetsockoptInt(names, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if family == unix.AF_INET6 {
		g.families = 2
	}
	file := os.NewFile(uintptr(names), "names")
	defer file.Close()
	conn, e := net.FilePacketConn(file)
	if err := cmp.Or(err, e); err != nil {
		return err
	}
	g.names = conn.(*net.UDPConn)
	wait := unix.Timeval{Sec: 5}
	for _, n := range []netlinkSocket{g.commands, g.outer} {
		if err := unix.SetsockoptTimeval(int(n), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
			return err
		}
	}
	listener, err := g.listen(kernel.NamePort)
	if err != nil {
		return err
	}
	p := &port{listener: listener, forNames: true}
	g.Mu.Lock()
	g.Ports[kernel.NamePort] = p
	g.Mu.Unlock()
	g.work.Go(func() { g.serve(p, g.askers, g.answerStream) })
	g.work.Go(g.answerDatagrams)
	for _, r := range g.gate.Rules().Networks() {
		if err := g.reach(r); err != nil && r.Prefix.Addr().Is4() {
			return fmt.Errorf("%v: %w", r.Prefix, err)
		}
	}
	g.gate.OnForget(g.forget)
	g.gate.OnReach(g.reach)
	return nil
}

// Unnamed is an address that no rule names, one for documents; where there is none,
// that of nobody, which is this machine.
func (g *Gateway) Unnamed() netip.AddrPort {
	nobody := netip.AddrPortFrom(netip.IPv4Unspecified(), 9)
	if g == nil {
		return nobody
	}
	for _, a := range []string{"198.51.100.1", "203.0.113.1", "192.0.2.1"} {
		at := netip.AddrPortFrom(netip.MustParseAddr(a), 9)
		if !slices.ContainsFunc(g.gate.Rules().Networks(), func(r network.Reach) bool { return r.Prefix.Contains(at.Addr()) }) {
			return at
		}
	}
	return nobody
}

// Proof is what the self-test says of the network: more than that the server's own
// ports are out of reach.
func (g *Gateway) Proof(own selftest.Check, beyond unix.Errno) selftest.Check {
	at := g.Unnamed()
	switch {
	case !own.Proven || at.Addr().IsUnspecified():
		return own
	case beyond == 0:
		return selftest.Check{Detail: fmt.Sprintf("a confined process could connect to %v, which no rule of --network names", at)}
	}
	own.Detail += fmt.Sprintf("; and to %v, which no rule of --network names: %v", at, beyond)
	return own
}

// bothFamilies adds a rule to a namespace for each family, or takes them back.
func (g *Gateway) bothFamilies(n func(RouteRule) error, s RouteRule) (err error) {
	for f := range g.families {
		s.Family = netlink.Family(wayHere[f])
		err = cmp.Or(err, n(s))
	}
	return err
}

// listen listens in the gateway on a port of every address.
func (g *Gateway) listen(number uint16) (*net.TCPListener, error) {
	sock, err := g.newSocket()
	if err != nil {
		return nil, fmt.Errorf("a socket of the gateway: %w", err)
	}
	file := os.NewFile(uintptr(sock), "port")
	defer file.Close()
	if g.families > 1 { // one that is accepted from an address of IPv6 is for IPv6 only
		err = cmp.Or(unix.SetsockoptInt(sock, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0), unix.Bind(sock, &unix.SockaddrInet6{Port: int(number)}))
	} else {
		err = unix.Bind(sock, &unix.SockaddrInet4{Port: int(number)})
	}
	if err := cmp.Or(err, unix.Listen(sock, mostWaiting)); err != nil {
		return nil, fmt.Errorf("port %d of the gateway: %w", number, err)
	}
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// newSocket makes a socket in the gateway, from outside: one that is accepted belongs
// to the namespace of that which accepts it, and is like new once it is disconnected.
func (g *Gateway) newSocket() (int, error) {
	at, err := unix.Getsockname(g.mint)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(g.client, at); err != nil {
		return -1, err
	}
	sock, _, err := unix.Accept4(g.mint, unix.SOCK_CLOEXEC)
	kernel.Disconnect(g.client)
	if err != nil {
		return -1, err
	}
	kernel.Disconnect(sock)
	return sock, nil
}

// Close ends all connections and gives the gateway back.
func (g *Gateway) Close() {
	if g == nil {
		return
	}
	g.Mu.Lock()
	closed := g.closed
	g.closed = true
	g.Mu.Unlock()
	if closed {
		return
	}
	g.cancel()
	g.Mu.Lock()
	for _, p := range g.Ports {
		p.listener.Close()
	}
	for conn := range g.Open {
		_ = conn.SetLinger(0)
		conn.Close()
	}
	if g.names != nil {
		g.names.Close()
	}
	g.spare.close()
	g.Mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.work.Wait()
		closeDescriptors([]int{int(g.commands), int(g.outer), g.mint, g.client, g.framesSeen, g.replay})
	}()
	select {
	case <-ended:
	case <-time.After(2 * time.Second): // whom the gate still dials
	}
}
