package web

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// connLimit is a listener that keeps descriptors for what calls need: it closes
// connections when there are too many, first of those that never sent what the
// guard let pass, and of these the oldest.
type connLimit struct {
	net.Listener
	most int

	mu      sync.Mutex
	open    map[net.Conn]*list.Element // nil for those that the guard let pass
	unknown list.List
}

// mostConns is for where descriptors are not scarce.
const mostConns = 4 * 2 * maxSlots

func newConnLimit(ln net.Listener) *connLimit {
	return &connLimit{Listener: ln, most: min(mostConns, descriptors()/2), open: map[net.Conn]*list.Element{}}
}

// watch has the server tell of its connections.
func (l *connLimit) watch(web *http.Server) {
	web.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, knownKey{}, func() { l.know(c) })
	}
	web.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			l.forget(c)
		}
	}
}

type knownKey struct{}

// known says that a request on the connection was let pass.
func known(ctx context.Context) {
	if know, ok := ctx.Value(knownKey{}).(func()); ok {
		know()
	}
}

// Accept returns the next connection that there is room for.
func (l *connLimit) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if old := l.enter(c); old != nil {
			_ = old.Close() // whatever it says, it is gone
			if old == c {
				continue
			}
		}
		return c, nil
	}
}

// enter counts a connection, and returns the one that has to make room, which is
// itself when all others are known.
func (l *connLimit) enter(c net.Conn) (old net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.most {
		first := l.unknown.Front()
		if first == nil {
			return c
		}
		old = l.unknown.Remove(first).(net.Conn)
		delete(l.open, old)
	}
	l.open[c] = l.unknown.PushBack(c)
	return old
}

func (l *connLimit) know(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.open[c]; at != nil {
		l.unknown.Remove(at)
		l.open[c] = nil
	}
}

func (l *connLimit) forget(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.open[c]; at != nil {
		l.unknown.Remove(at)
	}
	delete(l.open, c)
}
