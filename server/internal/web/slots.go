package web

import (
	"context"
	"sync/atomic"
)

// slots count what is being served.
type slots struct{ posts, streams slot }

// A slot counts requests of one kind, up to maxSlots.
type slot struct{ taken atomic.Int64 }

// take counts one more, unless there are too many. release may be called twice.
func (s *slot) take() (release func(), ok bool) {
	if s.taken.Add(1) > maxSlots {
		s.taken.Add(-1)
		return nil, false
	}
	var done atomic.Bool
	return func() {
		if done.CompareAndSwap(false, true) {
			s.taken.Add(-1)
		}
	}, true
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
