package server

import (
	"context"
	"io"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/stream"
	"github.com/perstack-ai/perstack-base/server/internal/web"
	"github.com/perstack-ai/perstack-base/tools"
)

// A transport brings the messages of clients to the dispatcher, and its answers
// back. When ctx ends, calls that were read still get their time to be answered.
type transport interface {
	Serve(ctx context.Context) error
}

var (
	_ transport = (*stream.Stdio)(nil)
	_ transport = (*web.Streamable)(nil)
	_ transport = (*web.SSE)(nil)
)

// ServeStdio serves one client over in and out until in ends, out is gone or ctx
// ends. Nothing else may write to out, and SIGPIPE must not be ignored: children
// inherit that.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	session, end := s.sessions.Open("stdio")
	defer end()
	return s.serve(tools.WithSession(ctx, session), &stream.Stdio{
		Dispatcher: s.over(dispatch.TransportPipe), In: in, Out: out, Drain: s.drain,
	})
}

// over is the dispatcher for what comes over a transport of that name.
func (s *Server) over(transport string) *dispatch.Dispatcher {
	d := s.dispatcher
	d.Transport = transport
	return &d
}

func (s *Server) serve(ctx context.Context, t transport) error {
	s.watched.Do(s.watchSkills)
	return t.Serve(ctx)
}
