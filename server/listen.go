package server

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/tools"
)

// A listener is the session of one subscriptions/listen. A connection can have
// several at a time; each gets what it named, tagged with its own id.
type listener struct {
	session
	tag json.RawMessage

	filterMu sync.Mutex
	filter   mcp.SubscriptionFilter
}

var _ mcpserver.SessionWithSubscriptionFilter = (*listener)(nil)

// SetSubscriptionFilter records what the client named.
func (l *listener) SetSubscriptionFilter(filter mcp.SubscriptionFilter) {
	l.filterMu.Lock()
	defer l.filterMu.Unlock()
	l.filter = filter
}

// SubscriptionFilter returns what the client named, nothing at first.
func (l *listener) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	l.filterMu.Lock()
	defer l.filterMu.Unlock()
	return l.filter, true
}

// listeners tells the subscriptions of a process apart.
var listeners atomic.Uint64

// listen serves a subscription until ctx ends. It comes back earlier only when
// there is nothing to subscribe to.
func (cfg *connConfig) listen(ctx context.Context, r *request) (any, *rpcError) {
	l := &listener{tag: json.RawMessage(r.id)}
	l.id = "listen/" + strconv.FormatUint(listeners.Add(1), 10)
	l.notes = make(chan mcp.JSONRPCNotification, noteBacklog)
	l.ready = true
	if err := cfg.handler.RegisterSession(ctx, l); err != nil {
		return nil, &rpcError{Code: mcp.INTERNAL_ERROR}
	}
	defer cfg.handler.UnregisterSession(ctx, l.id)

	over, sent := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sent)
		l.forward(over, tools.NotifierFrom(ctx))
	}()
	result, fault := r.unwrap(cfg.handler.HandleMessage(cfg.handler.WithContext(ctx, l), r.body))
	close(over)
	<-sent
	if r, ok := result.(mcp.SubscriptionsListenResult); ok {
		r.EnsureResultMeta().SetSubscriptionID(l.tag)
		result = r
	}
	return result, fault
}

// forward sends notifications until over is closed and none is left.
func (l *listener) forward(over <-chan struct{}, notify tools.Notifier) {
	for {
		select {
		case n := <-l.notes:
			notify(n.Method, l.tagged(n.Params))
			continue
		default:
		}
		select {
		case n := <-l.notes:
			notify(n.Method, l.tagged(n.Params))
		case <-over:
			if len(l.notes) == 0 {
				return
			}
		}
	}
}

// tagged adds the id of the subscription. The one that mcp-go may have set went
// through a float; the map is shared with every session that gets the note.
func (l *listener) tagged(params mcp.NotificationParams) mcp.NotificationParams {
	meta := maps.Clone(params.Meta)
	if meta == nil {
		meta = map[string]any{}
	}
	meta[mcp.MetaKeySubscriptionID] = l.tag
	params.Meta = meta
	return params
}
