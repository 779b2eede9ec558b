package tasks

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

// Extension is the name of the extension.
const Extension = "io.modelcontextprotocol/tasks"

// Bounds of what a server keeps. Where no more can run, a call stays a call: its
// client waits. Of those that have ended, the oldest make room.
const (
	maxRunning = 256
	maxEnded   = 1024
	maxBytes   = 64 << 20 // of results
)

// How often clients are asked to look: at first often, at work that takes its time less.
const (
	pollSoon   = time.Second
	pollLater  = 5 * time.Second
	laterAfter = time.Minute
)

// A Registry has the tasks of one server. Make one with [New].
type Registry struct {
	after    time.Duration
	ttl      time.Duration
	instance func() string // tells this server's ids from those of another

	mu       sync.Mutex
	draining bool // no call becomes a task any more
	closed   bool // nothing is kept any more
	tasks    map[string]*task
	running  int
	idle     chan struct{} // closed when none runs any more; nil = nothing waits for that
	ended    []*task       // the oldest first
	bytes    int           // of the results of ended
}

// New makes a registry. A call becomes a task when it is not over after the time
// given by after; its result is kept for ttl.
func New(after, ttl time.Duration) *Registry {
	return &Registry{after: after, ttl: ttl, instance: sync.OnceValue(func() string { return random(4) }), tasks: map[string]*task{}}
}

// random returns n random bytes in hexadecimal digits.
func random(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}

// idBytes are the random bytes of an id: knowing it is what entitles to the task.
const idBytes = 16

func (g *Registry) newID() string { return "task-" + g.instance() + "-" + random(idBytes) }

// find returns a task; mu is held.
func (g *Registry) find(id string) (*task, *jsonrpc.Error) {
	if t := g.tasks[id]; t != nil {
		return t, nil
	}
	shown := jsonrpc.Clip(id, 100)
	if of, ok := instanceOf(id); ok && of != g.instance() {
		return nil, jsonrpc.InvalidParams(fmt.Sprintf(
			"Task %q belongs to another server or to an earlier start of this one: ids of this server begin with task-%s-. "+
				"Where several servers share an address, send requests about a task to the one that began it, by the header Mcp-Name.", shown, g.instance()))
	}
	return nil, jsonrpc.InvalidParams(fmt.Sprintf(
		"Task %q is unknown or has expired: results are kept for a limited time (--task-ttl). Call the tool again.", shown))
}

// instanceOf reads which server an id is of.
func instanceOf(id string) (instance string, ok bool) {
	rest, ok := strings.CutPrefix(id, "task-")
	instance, secret, found := strings.Cut(rest, "-")
	return instance, ok && found && len(secret) == hex.EncodedLen(idBytes)
}

// keep puts an ended task among those whose result can still be had; mu is held.
func (g *Registry) keep(t *task) {
	if g.running--; g.running == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
	if g.closed {
		g.forget(t)
		return
	}
	g.ended = append(g.ended, t)
	g.bytes += t.size()
	for len(g.ended) > maxEnded || g.bytes > maxBytes && len(g.ended) > 1 {
		g.drop(g.ended[0])
	}
	t.expiry = time.AfterFunc(g.ttl, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.drop(t)
	})
}

// drop forgets an ended task; mu is held.
func (g *Registry) drop(t *task) {
	for i, e := range g.ended {
		if e == t {
			g.ended = append(g.ended[:i:i], g.ended[i+1:]...)
			g.bytes -= t.size()
			g.forget(t)
			return
		}
	}
}

// forget makes the id of a task unknown; mu is held.
func (g *Registry) forget(t *task) {
	if t.expiry != nil {
		t.expiry.Stop()
	}
	delete(g.tasks, t.id)
	t.ring()
}

// Drain keeps calls from becoming tasks, so that they are answered before the server
// ends.
func (g *Registry) Drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = true
}

// Close cancels every task and forgets those that have ended. It does not wait for
// the work: see Wait.
func (g *Registry) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining, g.closed = true, true
	for _, t := range g.tasks {
		t.cancel()
		if t.lifetime > 0 {
			g.forget(t)
		}
	}
	g.ended, g.bytes = nil, 0
}

// Wait waits for the work of tasks to end, at most for limit. One may wait.
func (g *Registry) Wait(limit time.Duration) {
	g.mu.Lock()
	idle := make(chan struct{})
	if g.running == 0 {
		close(idle)
	} else {
		g.idle = idle
	}
	g.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}
