package tools

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
)

// An Asker asks the user of the client that a call came from, and waits for the
// answer.
type Asker interface {
	RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error)
}

type askerKey struct{}

// WithAsker returns a context whose call asks through a.
func WithAsker(ctx context.Context, a Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// askerOf returns the asker of the call in ctx, nil when its client cannot be asked.
func askerOf(ctx context.Context) Asker {
	a, _ := ctx.Value(askerKey{}).(Asker)
	return a
}
