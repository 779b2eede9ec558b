package web

import (
	"container/list"
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/tools"
)

// Bounds of the sessions that clients of Streamable HTTP leave behind.
const (
	sessionIdle = 30 * time.Minute
	maxSessions = 10_000
)

// headerSession is the header that carries a session's id.
const headerSession = "Mcp-Session-Id"

// A client is one session of Streamable HTTP: what its requests share.
type client struct {
	*dispatch.Session
	tools *tools.Session
	end   func() // of tools

	// Guarded by clients.mu.
	used    time.Time
	busy    int // requests and streams being served
	ended   bool
	calls   map[string]context.CancelFunc // by id
	streams int                           // open GET streams

	questions dispatch.Questions
}

// clients are the sessions of a server, by id. One that is idle too long, or
// the least recently used of too many, is ended: its next request is refused
// and the client starts over.
type clients struct {
	sessions dispatch.Sessions
	now      func() time.Time

	mu   sync.Mutex
	byID map[string]*list.Element
	ages list.List // of *client, the last used first

	streams uint64 // opened so far
}

func newClients(sessions dispatch.Sessions) *clients {
	return &clients{sessions: sessions, now: time.Now, byID: map[string]*list.Element{}}
}

// create makes a session; enter finds it once it is kept.
func (c *clients) create() *client {
	id := newSessionID()
	k := &client{Session: dispatch.NewSession(id, nil), calls: map[string]context.CancelFunc{}}
	k.tools, k.end = c.sessions.Open(id)
	return k
}

// newSessionID is 128 random bits, as 32 hexadecimal digits.
func newSessionID() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

// keep makes a session known.
func (c *clients) keep(k *client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.used = c.now()
	c.byID[k.SessionID()] = c.ages.PushFront(k)
	if c.ages.Len() > maxSessions {
		for at := c.ages.Back(); at != nil; at = at.Prev() {
			if at.Value.(*client).busy == 0 {
				c.drop(at)
				return
			}
		}
	}
}

// enter begins to serve a request of the session with this id, nil when there is
// none; leave ends it.
func (c *clients) enter(id string) (k *client, leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.byID[id]
	if !ok {
		return nil, nil
	}
	k = at.Value.(*client)
	if k.busy == 0 && c.now().Sub(k.used) >= sessionIdle {
		c.drop(at)
		return nil, nil
	}
	c.ages.MoveToFront(at)
	k.busy++
	k.used = c.now()
	return k, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		k.busy--
		k.used = c.now()
	}
}

// remove ends a session and says whether there was one.
func (c *clients) remove(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.byID[id]
	if ok {
		c.drop(at)
	}
	return ok
}

// sweep ends the sessions that are idle for too long.
func (c *clients) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var before *list.Element
	for at := c.ages.Back(); at != nil; at = before {
		before = at.Prev()
		k := at.Value.(*client)
		if k.busy == 0 && c.now().Sub(k.used) >= sessionIdle {
			c.drop(at)
		}
	}
}

// close ends all sessions.
func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.ages.Len() > 0 {
		c.drop(c.ages.Back())
	}
}

// drop forgets a session and cancels its calls; mu is held. What its commands
// left running gets its time to end in the background.
func (c *clients) drop(at *list.Element) {
	k := c.ages.Remove(at).(*client)
	delete(c.byID, k.SessionID())
	k.ended = true
	for _, cancel := range k.calls {
		cancel()
	}
	go k.end()
}

// begin claims the id of a request of k. A second request with an id that is
// in flight is refused.
func (c *clients) begin(ctx context.Context, k *client, id string) (call context.Context, end func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := k.calls[id]; taken {
		return nil, nil, false
	}
	call, cancel := context.WithCancel(ctx)
	if k.ended {
		cancel()
	}
	k.calls[id] = cancel
	return call, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(k.calls, id)
	}, true
}

// cancel ends a call of k, if there is one of that id.
func (c *clients) cancel(k *client, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := k.calls[id]; ok {
		cancel()
	}
}

// listen makes mcp-go tell k what it tells everybody, as long as k has a stream
// open. The returned context ends with ctx or the session.
func (c *clients) listen(ctx context.Context, k *client, router dispatch.Router) (_ context.Context, notes <-chan mcp.JSONRPCNotification, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams++
	key := "stream/" + strconv.FormatUint(c.streams, 10)
	k.calls[key] = cancel
	if k.ended {
		cancel()
	}
	notes = k.Listen()
	if k.streams++; k.streams == 1 {
		_ = router.RegisterSession(ctx, k.Session) // its id is its own
	}
	return ctx, notes, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(k.calls, key)
		if k.streams--; k.streams == 0 {
			router.UnregisterSession(ctx, k.SessionID())
		}
	}
}
