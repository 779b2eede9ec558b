package server

import (
	"context"
	"fmt"
	"io"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/trace"
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

// traces are the spans of a server, and the file that they go to.
type traces struct {
	tracer *trace.Tracer // nil: no spans
	file   io.Closer
}

// open opens the file, where there is to be one.
func (t *traces) open(cfg Config, commands *process.Commands) error {
	if cfg.TraceFile == "" {
		return nil
	}
	file, err := commands.OpenOwn(cfg.TraceFile)
	if err != nil {
		return fmt.Errorf("cannot append to the trace file: %w", err)
	}
	t.file = file
	t.tracer = trace.New(trace.Config{To: file, Service: Name, Version: cfg.Version, Log: cfg.Log})
	return nil
}

// close writes the last spans, for a moment at most.
func (t *traces) close() error {
	if t.file == nil {
		return nil
	}
	t.tracer.Close()
	return t.file.Close()
}
