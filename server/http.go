package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/web"
)

// HTTP says how to serve many clients.
type HTTP struct {
	SSE     bool     // HTTP+SSE at /sse and /message, instead of Streamable HTTP at /mcp
	Token   string   // what clients must send as bearer token; "" = none
	Hosts   []string // names this server is called by besides loopback, with or without port
	Origins []string // browser origins permitted besides loopback; "*" needs a token
}

// Path is where clients connect.
func (h *HTTP) Path() string {
	if h.SSE {
		return web.PathSSE
	}
	return web.PathMCP
}

// handles says whether lists have ids: not every client has a session.
func (h *HTTP) handles() bool { return h != nil && !h.SSE }

func (h *HTTP) check() error {
	if slices.Contains(h.Origins, "*") && h.Token == "" {
		return errors.New("--allow-origin * needs a token: without one any web page could run commands here; set --auth-token-file")
	}
	return nil
}

// ParseToken reads a token as it stands in a file or variable, without its line
// end. One that could be guessed is refused.
func ParseToken(text string) (string, error) { return web.ParseToken(text) }

// ServeListener serves clients over HTTP until ctx ends, then lets every running
// request finish its answer: commands are told to end, streams are closed. It
// returns within 4 s of that. Config.HTTP must be set.
func (s *Server) ServeListener(ctx context.Context, ln net.Listener) error {
	if s.http.Token == "" && s.commands.Exposed(ln.Addr()) {
		return fmt.Errorf("commands could connect to this server at %s and open sessions that outlive their own: "+
			"set --auth-token-file, listen on a socket outside of what commands may write, or start with --sandbox landlock", ln.Addr())
	}
	defer process.Own(ln.Addr())()
	cfg := &web.Config{
		Listener: ln, Dispatcher: s.over(transportOf(ln.Addr())), Sessions: &s.sessions, Drain: s.drain,
		Access: web.Access{Token: s.http.Token, Hosts: s.http.Hosts, Origins: s.http.Origins},
	}
	if s.http.SSE {
		return s.serve(ctx, web.NewSSE(cfg))
	}
	return s.serve(ctx, web.NewStreamable(cfg))
}

// transportOf names the transport of a listener for spans.
func transportOf(at net.Addr) string {
	if at.Network() == "unix" {
		return dispatch.TransportUnix
	}
	return dispatch.TransportTCP
}
