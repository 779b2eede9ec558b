package network

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A Resolver looks names up, as [net.Resolver] does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config is what a Gate is made from. Fields that are nil have defaults.
type Config struct {
	Rules    Rules
	Log      *slog.Logger                 // a line for each connection and refusal
	Resolver Resolver                     // the host's own
	Own      func(to netip.AddrPort) bool // whether the server itself listens there: never reached
	// Dial connects from outside of the sandbox.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// A Gate is the way out of one session. It is safe for concurrent use.
type Gate struct {
	cfg      Config
	routed   func(netip.Addr) bool // whether the host has a way to an address
	patience time.Duration         // for a lookup
	reached  reached
	lookups  lookups
	refusals refusals
	room     *room // shared with the other gates
	// Refusals, of which anybody can have many, do not hide what was let through.
	allowedLines, refusedLines flood

	ctx    context.Context // ends with the gate
	end    context.CancelFunc
	mu     sync.Mutex
	closed bool
	relays int
	work   sync.WaitGroup // lookups and relays
}

// NewGate makes the gate of a session. It costs nothing before its first use.
func NewGate(cfg Config) *Gate {
	g := &Gate{cfg: cfg, patience: lookupTime, room: everyGate, routed: func(netip.Addr) bool { return true }}
	if g.cfg.Log == nil {
		g.cfg.Log = slog.New(slog.DiscardHandler)
	}
	if g.cfg.Resolver == nil {
		g.cfg.Resolver = &hostResolver{net.Resolver{PreferGo: true}}
	}
	if g.cfg.Own == nil {
		g.cfg.Own = func(netip.AddrPort) bool { return false }
	}
	if g.cfg.Dial == nil {
		g.cfg.Dial, g.routed = dial, routed
	}
	g.ctx, g.end = context.WithCancel(context.Background())
	return g
}

// Rules returns what the gate lets through.
func (g *Gate) Rules() Rules { return g.cfg.Rules }

// begin counts work that Close waits for. It fails when the gate is closed.
func (g *Gate) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.work.Add(1)
	}
	return !g.closed
}

// Close ends what is relayed and answers nothing any more.
func (g *Gate) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.end()
	g.work.Wait()
	g.endLog()
}

// A Verdict says whether a command may connect to an address.
type Verdict struct {
	Allowed bool
	Host    string // the name by which the address is known, else the address
	Reason  string // why, in a few words
}

// Admit judges a connection over TCP that others make; Relay judges its own. It is
// logged, and a refusal is remembered.
func (g *Gate) Admit(to netip.AddrPort) Verdict {
	v := g.judge(to)
	if v.Allowed {
		g.log(connection{verdict: v, to: to})
	}
	return v
}

// judge is Admit for a caller who logs what it allows.
func (g *Gate) judge(to netip.AddrPort) Verdict {
	to = netip.AddrPortFrom(plain(to.Addr()), to.Port())
	v, hint := g.verdict(to)
	if !v.Allowed {
		g.refuse(v, to, hint)
	}
	return v
}

// verdict decides, and for a refusal says in hint what else to do, or "" where a rule
// would permit it.
func (g *Gate) verdict(to netip.AddrPort) (v Verdict, hint string) {
	addr, port := to.Addr(), to.Port()
	refused := func(reason string) (Verdict, string) {
		return Verdict{Host: v.Host, Reason: reason}, reason
	}
	v.Host = addr.String()
	if !addr.IsValid() || port == 0 {
		return refused("this is no address to connect to")
	}
	g.readHosts()
	names := g.reached.names(addr)
	if len(names) > 0 {
		v.Host = names[0]
	}
	switch {
	case g.ctx.Err() != nil:
		return refused("the session has ended")
	case g.cfg.Own(to):
		return refused("the server itself listens there")
	}
	s, isSpecial := specialOf(addr)
	byAddress := g.cfg.Rules.address(addr, s.bits)
	if no := byAddress.deniedBy(port); no != "" {
		return refused(deniedBy(no))
	}
	byName, host, no := g.cfg.Rules.anyName(names, port)
	if no != "" {
		return refused(deniedBy(no))
	}
	if isSpecial && !byAddress.permits(port) { // whatever rules say of its names
		v.Reason = "this is the " + s.kind + " address " + addr.String() + ", which no rule names"
		if !byAddress.ports.empty() {
			v.Reason += " with this port"
		}
		return v, s.wayOut(addr, port)
	}
	switch {
	case byName:
		return Verdict{Allowed: true, Host: host, Reason: "the name is permitted"}, ""
	case byAddress.permits(port):
		return Verdict{Allowed: true, Host: v.Host, Reason: "the address is permitted"}, ""
	}
	v.Reason = "no rule permits it"
	return v, ""
}

func deniedBy(rule string) string { return "refused by the rule " + rule + " of --network" }

// anyName looks for a name by which a port is permitted. Where there is none, and
// denials are why for all of them, no is one of these.
func (r Rules) anyName(names []string, port uint16) (ok bool, host, no string) {
	denied := 0
	for _, name := range names {
		g := r.name(name)
		if g.permits(port) {
			return true, name, ""
		}
		if by := g.deniedBy(port); by != "" {
			no = by
			denied++
		}
	}
	if denied < len(names) {
		no = ""
	}
	return false, "", no
}

// A connection is a line of the log.
type connection struct {
	verdict Verdict
	to      netip.AddrPort
	failed  string // what went wrong after it was allowed
	in, out int64  // bytes that the command got and sent
	took    time.Duration
}

func (g *Gate) log(c connection) {
	verdict, reason, lines := "refused", c.verdict.Reason, &g.refusedLines
	if c.verdict.Allowed {
		verdict, lines = "allowed", &g.allowedLines
	}
	ok, missed := lines.take(c)
	if !ok {
		return
	}
	g.logMissed(verdict, missed)
	if c.failed != "" {
		reason += "; " + c.failed
	}
	g.cfg.Log.LogAttrs(context.Background(), slog.LevelInfo, "connection",
		slog.String("host", c.verdict.Host), slog.Int("port", int(c.to.Port())), slog.String("verdict", verdict), slog.String("reason", reason),
		slog.Int64("bytes_in", c.in), slog.Int64("bytes_out", c.out), slog.Int64("ms", c.took.Milliseconds()))
}
