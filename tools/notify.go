package tools

import "context"

// A Notifier writes one notification onto the channel that will carry the
// result of the call in ctx, before that result. It returns once the
// notification is written, and drops it when the call has been answered or
// cancelled. params is marshalled to JSON.
type Notifier func(method string, params any)

type notifierKey struct{}

// WithNotifier returns a context whose call notifies through n.
func WithNotifier(ctx context.Context, n Notifier) context.Context {
	return context.WithValue(ctx, notifierKey{}, n)
}

// NotifierFrom returns the notifier of the call in ctx, nil when there is none.
func NotifierFrom(ctx context.Context) Notifier {
	n, _ := ctx.Value(notifierKey{}).(Notifier)
	return n
}
