package server

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/tools"
)

// ServeStdio serves one client over in and out until in ends, out is gone or ctx
// ends; see serveStdio. Nothing else may write to out.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	session, end := s.newSession("stdio")
	defer end()
	return serveStdio(tools.WithSession(ctx, session), in, out, stdioConfig{connConfig: s.connConfig(), drain: s.commands.Terminate})
}

// connConfig is what every stream connection of this server needs.
func (s *Server) connConfig() connConfig {
	s.skills.watch.Do(s.watchSkills)
	return connConfig{handler: s.mcp, intercept: s.intercept, lane: s.lane, log: s.env.Log}
}

// lane is the queue that calls of a tool wait in.
func (s *Server) lane(tool string) string {
	chosen := s.chosen()
	i := slices.IndexFunc(chosen, func(c selected) bool { return c.tool.Name == tool })
	if i < 0 {
		return ""
	}
	return string(chosen[i].tool.Lane)
}

// intercept answers what mcp-go cannot: it has no words for an unknown tool, and
// knows nothing of skills.
func (s *Server) intercept(ctx context.Context, r *request) (any, *rpcError, bool) {
	if answer := skillMethods[r.method]; answer != nil && !s.fixture(r) {
		result, fault := answer(s, ctx, r)
		return result, fault, true
	}
	if strings.HasPrefix(r.method, "prompts/") {
		s.look(ctx)
		s.seek(ctx, r)
	}
	if r.method == methodToolsCall && r.tool != "" && s.mcp.GetTool(r.tool) == nil {
		return nil, invalidParams(s.unknownTool(r.tool)), true
	}
	if extras.intercept != nil {
		return extras.intercept(r)
	}
	return nil, nil, false
}
