package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// lookupTime is less than the 10 s that programs wait, so that they hear of it.
	lookupTime    = 8 * time.Second
	answerTime    = 60 * time.Second // how long an answer lives
	notFoundTime  = 5 * time.Second
	failedTime    = time.Second
	lookupsAtOnce = 16 // of one gate
	lookupsOfAll  = 64
	lookupsMost   = 1024 // with those that wait
	answersKept   = 1024
	addressesMost = 32 // of one answer
)

// resolving bounds the lookups of all gates, each of which holds a few descriptors.
var resolving = make(chan struct{}, lookupsOfAll)

// lookups asks the host's resolver once for what many ask, and remembers for a while.
type lookups struct {
	mu      sync.Mutex
	known   map[asked]found
	running map[asked]*lookup
	slots   chan struct{}
}

// asked is what the resolver is asked: a name, and "ip4" or "ip6".
type asked struct{ network, name string }

type found struct {
	addrs []netip.Addr
	err   error // errNotFound, errBusy, or the resolver's
	until time.Time
}

type lookup struct {
	done  chan struct{}
	found found
}

var (
	errNotFound = errors.New("there is no such name")
	errBusy     = errors.New("too many names are being looked up")
)

// find returns the addresses of a name as the host's resolver has them.
func (g *Gate) find(ctx context.Context, q asked) found {
	l := &g.lookups
	l.mu.Lock()
	if f, ok := l.fresh(q); ok {
		l.mu.Unlock()
		return f
	}
	run, ok := l.running[q]
	if !ok {
		if len(l.running) >= lookupsMost || !g.begin() {
			l.mu.Unlock()
			return found{err: errBusy}
		}
		if l.running == nil {
			l.running, l.known, l.slots = map[asked]*lookup{}, map[asked]found{}, make(chan struct{}, lookupsAtOnce)
		}
		run = &lookup{done: make(chan struct{})}
		l.running[q] = run
		go g.lookUp(q, run)
	}
	l.mu.Unlock()
	select {
	case <-run.done:
		return run.found
	case <-ctx.Done():
		return found{err: ctx.Err()}
	}
}

// remembered returns what was found lately.
func (l *lookups) remembered(q asked) (found, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fresh(q)
}

func (l *lookups) fresh(q asked) (found, bool) {
	f, ok := l.known[q]
	return f, ok && time.Now().Before(f.until)
}

// lookUp asks the resolver, on behalf of everybody who waits for the same.
func (g *Gate) lookUp(q asked, run *lookup) {
	defer g.work.Done()
	ctx, cancel := context.WithTimeout(g.ctx, g.patience)
	defer cancel()
	run.found = found{err: errBusy}
	select {
	case g.lookups.slots <- struct{}{}:
		select {
		case resolving <- struct{}{}:
			run.found = resolve(ctx, g.cfg.Resolver, q)
			<-resolving
		case <-ctx.Done():
		}
		<-g.lookups.slots
	case <-ctx.Done():
	}
	g.lookups.keep(q, run)
}

func resolve(ctx context.Context, resolver Resolver, q asked) found {
	// With its last dot the name is whole: no search domain is tried.
	addrs, err := resolver.LookupNetIP(ctx, q.network, q.name+".")
	until := time.Now()
	var dns *net.DNSError
	var none *net.AddrError // of the other family only, in /etc/hosts
	switch {
	case errors.As(err, &none), errors.As(err, &dns) && dns.IsNotFound, err == nil && len(addrs) == 0:
		return found{err: errNotFound, until: until.Add(notFoundTime)}
	case err != nil:
		return found{err: err, until: until.Add(failedTime)}
	}
	f := found{until: until.Add(answerTime)}
	for _, addr := range addrs {
		addr = plain(addr)
		if addr.Is4() == (q.network == "ip4") && len(f.addrs) < addressesMost {
			f.addrs = append(f.addrs, addr)
		}
	}
	return f
}

func (l *lookups) keep(q asked, run *lookup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, q)
	for old := range l.known { // in no order: any of them can be asked for again
		if len(l.known) < answersKept {
			break
		}
		delete(l.known, old)
	}
	l.known[q] = run.found
	close(run.done)
}
