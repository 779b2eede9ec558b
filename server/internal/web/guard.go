package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

// A guard decides who may reach a transport. It looks at a request in a fixed
// order, and each refusal names the flag that would permit it. What a browser
// sends for a page of another origin never passes, not even with a token, and not
// as one of the requests that browsers send without asking first.
type guard struct {
	access Access
	realm  string
	local  bool // a unix socket: there is no host to check, and file modes guard it
	next   site
	slots  *slots
}

// An Access says who may reach a transport.
type Access struct {
	Token   string   // what clients must send as bearer token; "" = none
	Hosts   []string // names this server is called by besides loopback, with or without port
	Origins []string // browser origins permitted besides loopback; "*" needs a token
}

func newGuard(cfg *Config, next site) *guard {
	return &guard{access: cfg.Access, realm: cfg.Dispatcher.Identity.Name, local: cfg.Listener.Addr().Network() == "unix", next: next, slots: newSlots()}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Connection", "close") // an unknown client keeps no connection
	if r.URL.Path == pathHealth && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		_, _ = w.Write([]byte("ok"))
		return
	}
	if f := g.checkRoute(r); f != nil {
		f.write(w)
		return
	}
	g.allowOrigin(w, r.Header.Get("Origin"))
	if r.Method == http.MethodOptions {
		w.Header().Del("Connection")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if !g.authorized(r) {
		g.challenge(w, r)
		return
	}
	w.Header().Del("Connection")
	known(r.Context())
	release, f := g.admit(w, r)
	if f != nil {
		f.write(w)
		return
	}
	defer release()
	g.next.ServeHTTP(w, r.WithContext(withHeldSlot(r.Context(), heldSlot{g.slots, release})))
}

// checkRoute refuses a request for the path, the host or the origin that it names.
func (g *guard) checkRoute(r *http.Request) *httpFault {
	paths := g.next.paths()
	origin := r.Header.Get("Origin")
	switch {
	case !slices.Contains(paths, r.URL.Path):
		return refuse(http.StatusNotFound, "nothing is served here; MCP is at "+strings.Join(paths, " and ")+" (--transport)")
	case !g.local && !g.knowsHost(r.Host):
		return refuse(http.StatusForbidden, "this server is not called "+jsonrpc.Clip(r.Host, 200)+"; permit it with --allow-host")
	case len(r.Header.Values("Origin")) > 0 && !g.knowsOrigin(origin):
		return refuse(http.StatusForbidden, "requests of pages from "+jsonrpc.Clip(origin, 200)+" are refused; permit them with --allow-origin")
	}
	return nil
}

// knowsHost says whether the Host header names this server. A page that has
// pointed its own name at our address does not get past it.
func (g *guard) knowsHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if isLoopback(name) {
		return true
	}
	return slices.ContainsFunc(g.access.Hosts, func(known string) bool {
		return strings.EqualFold(strings.Trim(known, "[]"), name) || strings.EqualFold(known, host)
	})
}

func (g *guard) knowsOrigin(origin string) bool {
	if slices.Contains(g.access.Origins, origin) {
		return true
	}
	if origin != "null" && slices.Contains(g.access.Origins, "*") {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// allowOrigin tells the browser what a permitted page may do.
func (g *guard) allowOrigin(w http.ResponseWriter, origin string) {
	if origin == "" {
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Vary", "Origin")
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
	h.Set("Access-Control-Max-Age", "600")
}

func (g *guard) authorized(r *http.Request) bool {
	return g.access.Token == "" || hasToken(r.Header, g.access.Token)
}

func (g *guard) challenge(w http.ResponseWriter, r *http.Request) {
	ask := `Bearer realm="` + g.realm + `"`
	if bearer(r.Header.Get("Authorization"))+r.Header.Get(tokenHeader) != "" {
		ask += `, error="invalid_token"`
	}
	w.Header().Set("WWW-Authenticate", ask)
	refuse(http.StatusUnauthorized, "send the token of this server (--auth-token-file) as Authorization: Bearer TOKEN, or as "+tokenHeader+": TOKEN").write(w)
}

// admit takes a slot for the request; release gives it back, once.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) (release func(), f *httpFault) {
	slot := g.slots.posts
	switch {
	case r.Method == http.MethodGet:
		slot = g.slots.streams
	case r.Method != http.MethodPost:
		return func() {}, nil
	}
	release, ok := slot.take()
	if !ok {
		return nil, busy(w)
	}
	if r.Method == http.MethodPost && !isJSON(r) {
		release()
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Type must be application/json")
	}
	return release, nil
}

func busy(w http.ResponseWriter) *httpFault {
	w.Header().Set("Retry-After", "1")
	return refuse(http.StatusTooManyRequests, fmt.Sprintf("this server is busy: %[1]d requests and %[1]d streams are served at a time; try again", maxSlots))
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// slots are what may be served at a time.
type slots struct{ posts, streams slot }

// A slot has room for maxSlots requests of one kind.
type slot chan struct{}

func newSlots() *slots { return &slots{make(slot, maxSlots), make(slot, maxSlots)} }

// take takes one place, unless none is left. release may be called twice.
func (s slot) take() (release func(), ok bool) {
	select {
	case s <- struct{}{}:
		return sync.OnceFunc(func() { <-s }), true
	default:
		return nil, false
	}
}

type heldSlotKey struct{}

// A heldSlot is the slot that the request in a context has taken.
type heldSlot struct {
	slots   *slots
	release func()
}

func withHeldSlot(ctx context.Context, held heldSlot) context.Context {
	return context.WithValue(ctx, heldSlotKey{}, held)
}

// holdStream gives the slot of a POST back and takes that of a stream.
func holdStream(ctx context.Context) (release func(), ok bool) {
	held := ctx.Value(heldSlotKey{}).(heldSlot)
	release, ok = held.slots.streams.take()
	if ok {
		held.release()
	}
	return release, ok
}

// minToken is the fewest characters of a token.
const minToken = 16

// ParseToken reads a token as it stands in a file or variable, without its line
// end. One that could be guessed is refused.
func ParseToken(text string) (string, error) {
	token := strings.TrimRight(text, "\r\n")
	switch {
	case token == "":
		return "", errors.New("the token is empty")
	case len(token) < minToken:
		return "", errors.New("the token is shorter than 16 characters")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("the token has characters that do not fit into a header; use letters, digits and punctuation")
	}
	return token, nil
}

// tokenHeader carries the token where Authorization does not arrive: proxies that check a
// credential of their own, as the router of agent-sandbox, keep that header to themselves.
const tokenHeader = "X-Perstack-Base-Token"

// hasToken says whether a request carries the token want in one of the two headers.
func hasToken(h http.Header, want string) bool {
	return sameToken(bearer(h.Get("Authorization")), want) || sameToken(strings.TrimSpace(h.Get(tokenHeader)), want)
}

// bearer returns the token of an Authorization header, "" when it has none.
func bearer(header string) string {
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// sameToken compares in a time that tells nothing of want.
func sameToken(got, want string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
