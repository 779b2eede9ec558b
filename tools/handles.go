package tools

import (
	"container/list"
	"context"
	"crypto/rand"
	"encoding/base64"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// Bounds of what clients without a session can leave behind.
const (
	maxHandles = 10_000
	handleLife = 24 * time.Hour // since the last use
)

// AdaptListID keeps listId where a list can outlive its session, and drops it
// from the schemas everywhere else. It is an [Info.Adapt].
func AdaptListID(env *Env, l *Listing) {
	if !env.Settings.Handles {
		l.Input.Remove("listId")
		if l.Output != nil {
			l.Output.Remove("listId")
		}
	}
}

// handles are states that a client finds again by a random id, which is the
// secret: a client that has it has the state. The zero value is ready.
type handles struct {
	mu   sync.Mutex
	byID map[string]*list.Element
	ages list.List // of *handle, the last used first
	now  func() time.Time
}

type handle struct {
	id    string
	state states
	used  time.Time
}

// create makes an empty state. The least recently used makes room for it.
func (h *handles) create(prefix string) (id string, state *states) {
	id = prefix + randomID()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byID == nil {
		h.byID = map[string]*list.Element{}
	}
	entry := &handle{id: id, used: h.time()}
	h.byID[id] = h.ages.PushFront(entry)
	h.expire()
	return id, &entry.state
}

// find returns the state of an id, nil when there is none or it has expired.
func (h *handles) find(id string) *states {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expire()
	at, ok := h.byID[id]
	if !ok {
		return nil
	}
	h.ages.MoveToFront(at)
	entry := at.Value.(*handle)
	entry.used = h.time()
	return &entry.state
}

// expire drops what is too old or too much; mu is held.
func (h *handles) expire() {
	for at := h.ages.Back(); at != nil; at = h.ages.Back() {
		entry := at.Value.(*handle)
		if h.ages.Len() <= maxHandles && h.time().Sub(entry.used) < handleLife {
			return
		}
		h.ages.Remove(at)
		delete(h.byID, entry.id)
	}
}

func (h *handles) time() time.Time {
	if h.now != nil {
		return h.now()
	}
	return time.Now()
}

// randomID is 128 random bits, in 22 characters.
func randomID() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// Find returns the T of the list that a call means: that of listID when it is
// not empty, else the session's. A client without a session gets a new list and
// its id, which belongs into the result; newID is empty otherwise. An unknown id
// is an [Error].
func (s *State[T]) Find(ctx context.Context, env *Env, listID string) (v *T, newID string, err error) {
	if listID != "" {
		state := env.lists.find(listID)
		if state == nil {
			return nil, "", Errorf(fault.NotFound, "", "%s %q is unknown or has expired. Call %s without listId to start a new one.", s.what, listID, s.tool)
		}
		return s.in(state), "", nil
	}
	session := SessionOf(ctx)
	if !session.OneCall {
		return s.in(&session.states), "", nil
	}
	newID, state := env.lists.create(s.prefix)
	return s.in(state), newID, nil
}

// Look returns what Find would, without starting anything: an empty T where
// there is no list.
func (s *State[T]) Look(ctx context.Context, env *Env, listID string) *T {
	session := SessionOf(ctx)
	if listID == "" && !session.OneCall {
		return s.in(&session.states)
	}
	if state := env.lists.find(listID); state != nil {
		return s.in(state)
	}
	return s.make()
}
