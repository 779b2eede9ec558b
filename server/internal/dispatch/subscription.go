package dispatch

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/server/internal/tasks"
	"github.com/perstack-ai/perstack-base/tools"
)

// A listener is the session of one subscriptions/listen. A connection can have
// several at a time; each gets what it named, tagged with its own id.
type listener struct {
	Session
	tag json.RawMessage

	tasks []string      // that it is to, besides
	acked chan struct{} // closed when the client knows what it is to

	filter field[mcp.SubscriptionFilter]
}

var _ mcpserver.SessionWithSubscriptionFilter = (*listener)(nil)

// SetSubscriptionFilter records what the client named.
func (l *listener) SetSubscriptionFilter(filter mcp.SubscriptionFilter) {
	l.filter.set(filter)
}

// SubscriptionFilter returns what the client named, nothing at first.
func (l *listener) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	return l.filter.get(), true
}

// listeners tells the subscriptions of a process apart.
var listeners atomic.Uint64

// listen serves a subscription until ctx ends. It comes back earlier only when
// there is nothing to subscribe to.
func (d *Dispatcher) listen(ctx context.Context, r *Request) (any, *jsonrpc.Error) {
	ids, fault := d.watchedTasks(r)
	if fault != nil {
		return nil, fault
	}
	l := &listener{tag: json.RawMessage(r.ID), tasks: ids, acked: make(chan struct{})}
	l.id = "listen/" + strconv.FormatUint(listeners.Add(1), 10)
	l.Listen()
	l.MarkReady()
	if err := d.Router.RegisterSession(ctx, l); err != nil {
		return nil, internalError()
	}
	defer d.Router.UnregisterSession(ctx, l.id)

	over := make(chan struct{})
	var sent sync.WaitGroup
	sent.Go(func() { l.forward(over, tools.NotifierFrom(ctx)) })
	if len(l.tasks) > 0 {
		sent.Go(func() { d.watch(ctx, over, l) })
	}
	result, fault := d.route(d.Router.WithContext(ctx, l), r)
	if len(l.tasks) > 0 && fault == nil {
		<-ctx.Done() // mcp-go ends what it takes for a subscription to nothing
	}
	close(over)
	sent.Wait()
	if r, ok := result.(mcp.SubscriptionsListenResult); ok {
		r.EnsureResultMeta().SetSubscriptionID(l.tag)
		result = r
	}
	return result, fault
}

// watch tells how the tasks of l are, once it is acknowledged, until ctx ends.
func (d *Dispatcher) watch(ctx context.Context, over <-chan struct{}, l *listener) {
	select {
	case <-l.acked:
	case <-over:
		return
	}
	notify := tools.NotifierFrom(ctx)
	d.Tasks.Watch(ctx, l.tasks, func(v *tasks.View) {
		v.Meta = mcp.NewMetaFromMap(map[string]any{mcp.MetaKeySubscriptionID: l.tag})
		notify("notifications/tasks", v)
	})
}

// An acknowledged filter is mcp-go's, and the tasks that it does not know of.
type acknowledged struct {
	mcp.SubscriptionFilter
	TaskIDs []string `json:"taskIds,omitempty"`
}

// send passes a note on to the client.
func (l *listener) send(n mcp.JSONRPCNotification, notify tools.Notifier) {
	params := l.tagged(n.Params)
	if n.Method != mcp.MethodNotificationSubscriptionsAcknowledged {
		notify(n.Method, params)
		return
	}
	if filter, ok := params.AdditionalFields["notifications"].(mcp.SubscriptionFilter); ok && len(l.tasks) > 0 {
		params.AdditionalFields = map[string]any{"notifications": acknowledged{filter, l.tasks}}
	}
	notify(n.Method, params)
	close(l.acked)
}

// forward sends notifications until over is closed and none is left.
func (l *listener) forward(over <-chan struct{}, notify tools.Notifier) {
	for {
		select {
		case n := <-l.notes:
			l.send(n, notify)
			continue
		default:
		}
		select {
		case n := <-l.notes:
			l.send(n, notify)
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
