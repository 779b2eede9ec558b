package server

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

type slotsKey struct{}

// A place is the slot that a request in its context has taken.
type place struct {
	slots   *slots
	release func()
}

func withPlace(ctx context.Context, p place) context.Context {
	return context.WithValue(ctx, slotsKey{}, p)
}

// asStream gives the place of a POST back and takes that of a stream.
func asStream(ctx context.Context) (release func(), ok bool) {
	p := ctx.Value(slotsKey{}).(place)
	release, ok = p.slots.streams.take()
	if ok {
		p.release()
	}
	return release, ok
}
