package web

import (
	"context"
	"sync"
)

// slots are what may be served at a time.
type slots struct{ posts, streams slot }

// A slot has room for maxSlots requests of one kind.
type slot chan struct{}

func newSlots() *slots { return &slots{make(slot, maxSlots), make(slot, maxSlots)} }

// take takes one place, unless none is left. release may be called twice.
func (s slot) take() (release func(), ok bool) {
	select {
	case s <- struct{}{}:
		return sync.OnceFunc(func() { <-s }), true
	default:
		return nil, false
	}
}

type heldSlotKey struct{}

// A heldSlot is the slot that the request in a context has taken.
type heldSlot struct {
	slots   *slots
	release func()
}

func withHeldSlot(ctx context.Context, held heldSlot) context.Context {
	return context.WithValue(ctx, heldSlotKey{}, held)
}

// holdStream gives the slot of a POST back and takes that of a stream.
func holdStream(ctx context.Context) (release func(), ok bool) {
	held := ctx.Value(heldSlotKey{}).(heldSlot)
	release, ok = held.slots.streams.take()
	if ok {
		held.release()
	}
	return release, ok
}
