package web

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

// An inquiry is a session of Streamable HTTP as one of its calls sees it: what
// that call asks the client goes out on the call's own answer.
type inquiry struct {
	*dispatch.Session
	questions *dispatch.Questions
	reply     *reply
}

var (
	_ mcpserver.SessionWithElicitation = (*inquiry)(nil)
	_ mcpserver.SessionWithSampling    = (*inquiry)(nil)
)

// RequestElicitation asks the client and waits for its answer, until ctx ends.
func (q *inquiry) RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return q.Elicit(ctx, r, q.ask)
}

// RequestSampling asks the client for a completion.
func (q *inquiry) RequestSampling(ctx context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return q.Sample(ctx, r, q.ask)
}

func (q *inquiry) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return q.questions.Ask(ctx, func(id string) error {
		line, err := jsonrpc.EncodeNotice(id, method, params)
		if err == nil && !q.reply.send(line) {
			err = dispatch.ErrClientGone
		}
		return err
	}, nil)
}
