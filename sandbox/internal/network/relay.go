package network

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	relaysAtOnce = 256 // of a gate
	dialTime     = 30 * time.Second
	copiedSmall  = 1 << 20 // bytes in one direction, before it gets a pipe in the kernel
)

// buffers are for what is copied before.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to.String())
}

func (g *Gate) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return g.cfg.Dial(ctx, to)
}

// Relay connects what a command has opened with where it wanted to, if that is
// admitted, and returns when both are closed. It closes inside; a refused one ends
// with a reset.
func (g *Gate) Relay(ctx context.Context, inside *net.TCPConn, to netip.AddrPort) {
	defer inside.Close()
	if !g.begin() {
		reset(inside)
		return
	}
	defer g.work.Done()
	to = netip.AddrPortFrom(plain(to.Addr()), to.Port())
	v := g.judge(to)
	if !v.Allowed {
		reset(inside)
		return
	}
	if !g.enter(to.Addr()) {
		v = Verdict{Host: v.Host, Reason: "too many connections at once; close some"}
		g.refuse(v, to, v.Reason)
		reset(inside)
		return
	}
	defer g.leave(to.Addr())
	line := connection{verdict: v, to: to}
	start := time.Now()
	if err := g.connect(ctx, inside, to, &line); err != nil {
		line.failed = err.Error()
		reset(inside)
	}
	line.took = time.Since(start)
	g.log(line)
}

// enter counts a relay, and keeps its address from being forgotten. It fails where
// there are too many.
func (g *Gate) enter(to netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.relays >= relaysAtOnce || !g.room.enter(g.relays) {
		return false
	}
	g.relays++
	g.reached.hold(to, 1)
	return true
}

func (g *Gate) leave(to netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.relays--
	g.room.leave()
	g.reached.hold(to, -1)
}

// connect dials and copies both ways until both are done, the gate is closed, or ctx
// has ended.
func (g *Gate) connect(ctx context.Context, inside *net.TCPConn, to netip.AddrPort, line *connection) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	outside, err := g.dial(ctx, to)
	if err != nil {
		return err
	}
	defer outside.Close()
	pair := &pair{inside: inside, outside: outside}
	defer context.AfterFunc(ctx, pair.reset)()
	tune(inside)
	tune(outside)
	sent := make(chan error, 1)
	go func() {
		n, err := pair.copy(outside, inside)
		line.out = n
		sent <- err
	}()
	line.in, err = pair.copy(inside, outside)
	if other := <-sent; err == nil {
		err = other
	}
	if pair.failed.Load() {
		pair.reset()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// A pair is the two ends of a relay.
type pair struct {
	inside, outside net.Conn
	failed          atomic.Bool
}

// move copies until the end. What is much moves in the kernel where both are sockets,
// by a pipe that most relays are not worth.
func move(dst, src net.Conn) (int64, error) {
	buffer := buffers.Get().(*[32 << 10]byte)
	small := &io.LimitedReader{R: src, N: copiedSmall}
	n, err := io.CopyBuffer(struct{ io.Writer }{dst}, small, buffer[:])
	buffers.Put(buffer)
	if err != nil || small.N > 0 {
		return n, err
	}
	much, err := io.Copy(dst, src)
	return n + much, err
}

// copy moves what src sends to dst, and hands on how it ends: the end of what is sent
// as that, a failure as a reset.
func (p *pair) copy(dst, src net.Conn) (int64, error) {
	n, err := move(dst, src)
	if err == nil && !p.failed.Load() {
		if half, ok := dst.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		return n, nil
	}
	p.failed.Store(true)
	if _, gone := src.Write(nil); gone != nil {
		p.reset()
		return n, err
	}
	// It was dst that failed: what it had sent before is still on its way to src by the
	// other copy, as the answer of a server that does not want the rest of a request.
	return n, err
}

func (p *pair) reset() {
	reset(p.inside)
	reset(p.outside)
}

// reset closes a connection so that its other end sees that something was wrong.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

func tune(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetNoDelay(true)
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true})
	}
}
