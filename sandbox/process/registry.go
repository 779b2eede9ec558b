package process

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// A registry holds the commands that somebody started and can come back to.
type registry struct {
	mu       sync.Mutex
	limits   sandbox.Limits
	byID     map[string]*holding
	order    []*holding // as they were started
	starting int
	count    int
	closed   bool
}

// A holding is one of them.
type holding struct {
	*Running
	own   *Shell // of a command that has one to itself
	timer *time.Timer
}

// A TooManyError refuses another running command.
type TooManyError struct {
	Most int
	IDs  []string // those that run; empty where nobody is to know them
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%d commands run already, as many as may", e.Most)
}
func (*TooManyError) Code() fault.Code { return fault.Unavailable }

// Start starts a command that outlives the call, with stdin open and both outputs
// as one stream. It is killed with the session.
func (s *Shell) Start(ctx context.Context, c Command) (*Running, error) {
	return s.held.start(true, func() (*Running, *Shell, error) {
		r, err := s.start(ctx, c)
		return r, nil, err
	})
}

// StartApart starts a command that outlives the session: its id, which nobody can
// guess, is all that leads to it, and it is killed when nobody has asked for it for
// some time.
func (s *Shell) StartApart(ctx context.Context, c Command) (*Running, error) {
	return s.c.apart.start(false, func() (*Running, *Shell, error) {
		own := s.c.NewCallShell()
		own.sees(s)
		r, err := own.start(ctx, c)
		if err != nil {
			_ = own.Close()
		}
		return r, own, err
	})
}

// Running returns a command that Start has started, nil when it is unknown.
func (s *Shell) Running(id string) *Running { return s.held.find(id) }

// RunningApart returns one that StartApart has started.
func (s *Shell) RunningApart(id string) *Running { return s.c.apart.find(id) }

// AllRunning lists what Start has started, in that order, ended ones too.
func (s *Shell) AllRunning() []*Running { return s.held.all() }

// start makes room for a command, starts it and holds it. numbered says that those
// who ask may know the others' ids, which are short.
func (g *registry) start(numbered bool, start func() (*Running, *Shell, error)) (*Running, error) {
	if err := g.reserve(numbered); err != nil {
		return nil, err
	}
	r, own, err := start()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.starting--
	if err == nil && g.closed { // so it is ending
		err = ErrEnding
	}
	if err != nil {
		return nil, err
	}
	g.count++
	if r.ID = "c" + strconv.Itoa(g.count); !numbered {
		var raw [16]byte
		_, _ = rand.Read(raw[:]) // never fails
		r.ID = "c_" + base64.RawURLEncoding.EncodeToString(raw[:])
	}
	e := &holding{Running: r, own: own}
	if g.byID == nil {
		g.byID = map[string]*holding{}
	}
	g.byID[r.ID], g.order = e, append(g.order, e)
	if own != nil {
		e.timer = time.AfterFunc(g.limits.KeepEnded, func() { g.drop(e) })
	}
	go g.watch(e)
	return r, nil
}

func (g *registry) reserve(numbered bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ids []string
	for _, e := range g.order {
		if _, over := e.Result(); !over {
			ids = append(ids, e.ID)
		}
	}
	if len(ids)+g.starting >= g.limits.RunningCommands {
		if !numbered {
			ids = nil
		}
		return &TooManyError{g.limits.RunningCommands, ids}
	}
	g.starting++
	return nil
}

// watch bounds what is kept once a command has ended.
func (g *registry) watch(e *holding) {
	<-e.Ended()
	if e.own != nil && e.process.over() {
		go func() { _ = e.own.Close() }()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byID[e.ID] != e {
		return
	}
	if e.timer == nil {
		e.timer = time.AfterFunc(g.limits.KeepEnded, func() { g.drop(e) })
	}
	g.bound()
}

// bound lets go of the commands that ended first, when too many are kept, or too
// much of what they wrote. mu is held.
func (g *registry) bound() {
	for {
		ended, bytes := 0, 0
		var first *holding
		for _, e := range g.order {
			if _, over := e.Result(); !over {
				continue
			}
			_, kept := e.out.Size()
			ended, bytes = ended+1, bytes+kept
			if first == nil || e.at.Before(first.at) {
				first = e
			}
		}
		if ended <= 1 || ended <= g.limits.EndedCommands && bytes <= g.limits.EndedBytes {
			return
		}
		g.remove(first)
	}
}

// find returns a command and lets it live on.
func (g *registry) find(id string) *Running {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.byID[id]
	if e == nil {
		return nil
	}
	if e.own != nil {
		e.timer.Reset(g.limits.KeepEnded)
	}
	return e.Running
}

func (g *registry) all() []*Running {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]*Running, len(g.order))
	for i, e := range g.order {
		all[i] = e.Running
	}
	return all
}

// drop lets go of a command whose time is over.
func (g *registry) drop(e *holding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(e)
}

// remove forgets a command, and ends one that has a shell of its own. mu is held.
func (g *registry) remove(e *holding) {
	if g.byID[e.ID] != e {
		return
	}
	delete(g.byID, e.ID)
	for i, other := range g.order {
		if other == e {
			g.order = append(g.order[:i:i], g.order[i+1:]...)
			break
		}
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	if e.own != nil {
		go func() { _ = e.own.Close() }()
	}
}

// close forgets all. Those with a shell of their own end by that.
func (g *registry) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for len(g.order) > 0 {
		g.remove(g.order[0])
	}
}
