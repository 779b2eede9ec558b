package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/server/internal/stream"
)

// Where clients connect.
const (
	PathMCP     = "/mcp"
	PathSSE     = "/sse"
	pathMessage = "/message"
	pathHealth  = "/healthz"
)

// A Config is what the HTTP transports share.
type Config struct {
	Listener   net.Listener
	Dispatcher *dispatch.Dispatcher
	Sessions   dispatch.Sessions
	Access     Access
	// Drain makes commands that run end at once and keeps others from
	// starting. It must not wait for them.
	Drain func()
}

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

// A site serves the requests that the guard let pass, at certain paths.
type site interface {
	http.Handler
	paths() []string
	// sweep drops what is expired; it is called now and then.
	sweep()
	// close drops every session.
	close()
}

// serve serves clients until ctx ends, then lets every running request finish its
// answer: commands are told to end, streams are closed. It returns within 4 s of that.
func (cfg *Config) serve(ctx context.Context, s site) error {
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer s.close()
	web := &http.Server{
		Handler:           newGuard(cfg, s),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes,
		BaseContext:       func(net.Listener) context.Context { return calls },
		ErrorLog:          slog.NewLogLogger(cfg.Dispatcher.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	limited := newConnLimit(cfg.Listener)
	limited.watch(web)
	go func() { served <- web.Serve(limited) }()
	if err := waitServing(ctx, served, s); err != nil {
		return err
	}
	cfg.Drain()
	stop := time.AfterFunc(stream.DrainTime, cancel)
	defer stop.Stop()
	return shutDown(web)
}

// waitServing returns when ctx ends, nil, or when serving fails.
func waitServing(ctx context.Context, served <-chan error, s site) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return err
		case <-tick.C:
			s.sweep()
		}
	}
}

// shutDown closes listener and connections, each when its answer is out. A
// connection that has sent nothing is not waited for to the end.
func shutDown(web *http.Server) error {
	ctx, done := context.WithTimeout(context.Background(), closeTime)
	defer done()
	if err := web.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return web.Close()
}

// readBody reads a request's message. The time to read is for the message alone:
// it is lifted afterwards, for a call may take longer.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *httpFault) {
	if r.ContentLength > jsonrpc.MaxMessage {
		drain(r)
		return nil, &httpFault{status: http.StatusRequestEntityTooLarge, err: jsonrpc.OversizeError(r.ContentLength)}
	}
	body, err := readAll(http.MaxBytesReader(w, r.Body, jsonrpc.MaxMessage), r.ContentLength)
	var large *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &large):
		drain(r)
		text := fmt.Sprintf("message exceeds the limit of %d bytes; send the content in smaller parts", jsonrpc.MaxMessage)
		return nil, refuse(http.StatusRequestEntityTooLarge, text)
	case errors.As(err, &network) && network.Timeout():
		return nil, refuse(http.StatusRequestTimeout, "the body was not complete within 30 s")
	case err != nil:
		return nil, &httpFault{status: http.StatusBadRequest, err: &jsonrpc.Error{Code: mcp.PARSE_ERROR, Message: "the body could not be read"}}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return jsonrpc.TrimMessage(body), nil
}

// accepts says whether the client reads answers of a kind; one that says nothing
// reads all.
func accepts(r *http.Request, kind string) bool {
	all := strings.Join(r.Header.Values("Accept"), ",")
	return all == "" || strings.Contains(all, "*/*") || strings.Contains(strings.ToLower(all), kind)
}

// drainBytes is how much of a message that is refused is read and dropped: a
// client that is still sending would not see the answer.
const drainBytes = 4 * jsonrpc.MaxMessage

func drain(r *http.Request) { _, _ = io.CopyN(io.Discard, r.Body, drainBytes) }

// initialBytes bounds the memory that a body gets for its announced size before it
// has arrived.
const initialBytes = 64 << 10

// readAll reads a body of the announced size, -1 when it was not announced.
func readAll(body io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	if size > 0 {
		b.Grow(int(min(size, initialBytes)) + bytes.MinRead)
	}
	_, err := b.ReadFrom(body)
	return b.Bytes(), err
}
