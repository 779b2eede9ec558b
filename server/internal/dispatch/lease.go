package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Lease is what a request has for itself and a task may need for longer. It ends
// with the last that holds it.
type Lease struct {
	holders atomic.Int64
	end     func()
}

// NewLease makes a lease that its maker holds until release is called.
func NewLease(end func()) (l *Lease, release func()) {
	l = &Lease{end: end}
	return l, l.Take()
}

// Take holds the lease until release is called. A nil lease has no end.
func (l *Lease) Take() (release func()) {
	if l == nil {
		return func() {}
	}
	l.holders.Add(1)
	return sync.OnceFunc(func() {
		if l.holders.Add(-1) == 0 {
			l.end()
		}
	})
}

type leaseKey struct{}

// WithLease returns a context whose call may have to take the lease.
func WithLease(ctx context.Context, l *Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

func leaseOf(ctx context.Context) *Lease {
	l, _ := ctx.Value(leaseKey{}).(*Lease)
	return l
}
