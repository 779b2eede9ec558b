package server

import (
	"bytes"
	"context"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// An inquiry is a session of Streamable HTTP as one of its calls sees it: what
// that call asks the client goes out on the call's own answer.
type inquiry struct {
	*session
	client  *client
	clients *clients
	reply   *reply
}

var _ mcpserver.SessionWithElicitation = (*inquiry)(nil)

// RequestElicitation asks the client and waits for its answer, until ctx ends.
func (q *inquiry) RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return q.elicit(ctx, r, q.ask)
}

func (q *inquiry) ask(ctx context.Context, method string, params any) ([]byte, error) {
	id, ch := q.clients.openAsk(q.client)
	defer q.clients.closeAsk(q.client, id)
	var line bytes.Buffer
	if err := encodeNotice(&line, id, method, params); err != nil {
		return nil, err
	}
	if !q.reply.send(line.Bytes()) {
		return nil, errClientGone
	}
	select {
	case a := <-ch:
		return a.result, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *clients) openAsk(k *client) (id string, ch chan answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.asked++
	id, ch = "srv-"+strconv.FormatUint(k.asked, 10), make(chan answer, 1)
	k.asks[id] = ch
	return id, ch
}

func (c *clients) closeAsk(k *client, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(k.asks, id)
}

// answered passes a response on to the call that waits for it.
func (c *clients) answered(k *client, m *message) {
	if !isString(m.id) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := string(unquote(m.id))
	if ch, ok := k.asks[id]; ok {
		delete(k.asks, id)
		ch <- answerOf(m)
	}
}

// listen makes mcp-go tell k what it tells everybody, as long as k has a stream
// open. The returned context ends with ctx or the session.
func (c *clients) listen(ctx context.Context, k *client, h handler) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams++
	key := "stream/" + strconv.FormatUint(c.streams, 10)
	k.calls[key] = cancel
	if k.ended {
		cancel()
	}
	if k.notes == nil {
		k.notes = make(chan mcp.JSONRPCNotification, noteBacklog)
	}
	if k.streams++; k.streams == 1 {
		_ = h.RegisterSession(ctx, k.session) // its id is its own
	}
	return ctx, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(k.calls, key)
		if k.streams--; k.streams == 0 {
			h.UnregisterSession(ctx, k.id)
		}
	}
}
