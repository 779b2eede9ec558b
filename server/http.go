package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/sandbox"
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
		return pathSSE
	}
	return pathMCP
}

// handles says whether lists have ids: not every client has a session.
func (h *HTTP) handles() bool { return h != nil && !h.SSE }

func (h *HTTP) check() error {
	if slices.Contains(h.Origins, "*") && h.Token == "" {
		return errors.New("--allow-origin * needs a token: without one any web page could run commands here; set --auth-token-file")
	}
	return nil
}

const (
	pathMCP     = "/mcp"
	pathSSE     = "/sse"
	pathMessage = "/message"
	pathHealth  = "/healthz"
)

// Bounds of the HTTP server. There is no bound on the whole of an answer: it
// would silently drop that of a long call. Each write has one instead.
const (
	headerTime  = 10 * time.Second
	bodyTime    = 30 * time.Second
	idleTime    = 120 * time.Second
	writeTime   = 60 * time.Second
	headerBytes = 64 << 10
	maxSlots    = 256 // requests in flight, and as many open streams of any kind

	// closeTime is what connections have to end, within the 4 s in which the
	// server must be gone.
	closeTime = 3 * time.Second
)

// A transport serves the requests that the guard let pass.
type transport interface {
	http.Handler
	// sweep drops what is expired; it is called now and then.
	sweep()
	// close drops every session.
	close()
}

// ServeListener serves clients over HTTP until ctx ends, then lets every running
// request finish its answer: commands are told to end, streams are closed. It
// returns within 4 s of that. Config.HTTP must be set.
func (s *Server) ServeListener(ctx context.Context, ln net.Listener) error {
	if s.http.Token == "" && s.commands.Exposed(ln.Addr()) {
		return fmt.Errorf("commands could connect to this server at %s and open sessions that outlive their own: "+
			"set --auth-token-file, listen on a socket outside of what commands may write, or start with --sandbox landlock", ln.Addr())
	}
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	t := s.transport(ctx)
	defer t.close()
	defer sandbox.Own(ln.Addr())()
	web := &http.Server{
		Handler:           newGuard(s.http, ln.Addr().Network() == "unix", t),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes,
		BaseContext:       func(net.Listener) context.Context { return calls },
		ErrorLog:          slog.NewLogLogger(s.env.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(ln) }()
	if err := waitServing(ctx, served, t); err != nil {
		return err
	}
	s.commands.Terminate()
	stop := time.AfterFunc(drainTime, cancel)
	defer stop.Stop()
	return shutDown(web)
}

// waitServing returns when ctx ends, nil, or when serving fails.
func waitServing(ctx context.Context, served <-chan error, t transport) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return err
		case <-tick.C:
			t.sweep()
		}
	}
}

// shutDown closes listener and connections, each when its answer is out. A
// connection that has sent nothing is not waited for to the end.
func shutDown(web *http.Server) error {
	patience, done := context.WithTimeout(context.Background(), closeTime)
	defer done()
	if err := web.Shutdown(patience); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return web.Close()
}

func (s *Server) transport(ending context.Context) transport {
	if s.http.SSE {
		return newSSE(ending, s)
	}
	return newStreamable(ending, s)
}

// readBody reads a request's message. The time to read is for the message alone:
// it is lifted afterwards, for a call may take longer.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *httpFault) {
	if r.ContentLength > maxMessage {
		drain(r)
		return nil, &httpFault{status: http.StatusRequestEntityTooLarge, err: oversizeError(r.ContentLength)}
	}
	body, err := readAll(http.MaxBytesReader(w, r.Body, maxMessage), r.ContentLength)
	var large *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &large):
		drain(r)
		text := fmt.Sprintf("message exceeds the limit of %d bytes; send the content in smaller parts", maxMessage)
		return nil, refuse(http.StatusRequestEntityTooLarge, text)
	case errors.As(err, &network) && network.Timeout():
		return nil, refuse(http.StatusRequestTimeout, "the body was not complete within 30 s")
	case err != nil:
		return nil, &httpFault{status: http.StatusBadRequest, err: &rpcError{Code: mcp.PARSE_ERROR, Message: "the body could not be read"}}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return trimMessage(body), nil
}

// accepts says whether the client reads answers of a kind; one that says nothing
// reads all.
func accepts(r *http.Request, kind string) bool {
	all := strings.Join(r.Header.Values("Accept"), ",")
	return all == "" || strings.Contains(all, "*/*") || strings.Contains(strings.ToLower(all), kind)
}
