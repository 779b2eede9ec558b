package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	. "github.com/perstack-ai/perstack-base/server/internal/servertest"
	"github.com/perstack-ai/perstack-base/tools"
)

// noShells makes sessions that run no commands.
type noShells struct{}

func (noShells) Open(id string) (*tools.Session, func()) { return tools.NewSession(id, nil), func() {} }

func (n noShells) OpenCall() (*tools.Session, func()) { return n.Open("") }

// newSite is the transport that serves b, and the guard before it.
func newSite(ending context.Context, b *Bench) (*Streamable, *guard) {
	cfg := &Config{Listener: tcp{}, Dispatcher: b.Dispatcher(), Sessions: noShells{}}
	h := NewStreamable(cfg)
	h.ending = ending
	return h, newGuard(cfg, h)
}

// tcp is a listener that only says what it is.
type tcp struct{ net.Listener }

func (tcp) Addr() net.Addr { return &net.TCPAddr{} }

// webBench serves the bench's tools; change may alter the server before it starts.
func webBench(t *testing.T, change func(*http.Server)) (*Bench, *Streamable, string) {
	t.Helper()
	b := New()
	h, web := newSite(t.Context(), b)
	site := httptest.NewUnstartedServer(web)
	if change != nil {
		change(site.Config)
	}
	site.Start()
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	return b, h, site.URL + PathMCP
}

func postTo(t *testing.T, ctx context.Context, url, session, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil, ""
	}
	req.Header.Set("Content-Type", "application/json")
	if session != "" {
		req.Header.Set(headerSession, session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp, string(text)
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`

func openSession(t *testing.T, url string) string {
	t.Helper()
	resp, body := postTo(t, t.Context(), url, "", hello)
	id := resp.Header.Get(headerSession)
	if resp.StatusCode != http.StatusOK || len(id) != 32 {
		t.Fatal(resp.Status, id, body)
	}
	return id
}

func postedCall(id int, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args)
}

func TestIdleSessionsEnd(t *testing.T) {
	b, h, url := webBench(t, nil)
	now := time.Now()
	h.clients.now = func() time.Time { return now }
	idle, busy := openSession(t, url), openSession(t, url)
	go postTo(t, t.Context(), url, busy, postedCall(2, "gate", `{"tag":"a"}`))
	<-b.Started
	now = now.Add(sessionIdle)
	h.sweep()
	if resp, body := postTo(t, t.Context(), url, idle, `{"jsonrpc":"2.0","id":3,"method":"ping"}`); resp.StatusCode != http.StatusNotFound {
		t.Errorf("an idle session: %s %s", resp.Status, body)
	}
	if resp, body := postTo(t, t.Context(), url, busy, `{"jsonrpc":"2.0","id":3,"method":"ping"}`); resp.StatusCode != http.StatusOK {
		t.Errorf("a session with a call that runs: %s %s", resp.Status, body)
	}
	close(b.Gate("a"))
	if got := len(h.clients.byID); got != 1 {
		t.Errorf("%d sessions are kept", got)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	c := newClients(noShells{})
	first := c.create()
	c.keep(first)
	_, leave := c.enter(first.SessionID())
	for range maxSessions {
		c.keep(c.create())
	}
	if len(c.byID) != maxSessions || c.ages.Len() != maxSessions {
		t.Errorf("%d sessions are kept", len(c.byID))
	}
	if _, ok := c.byID[first.SessionID()]; !ok {
		t.Error("a busy session was dropped")
	}
	leave()
	c.close()
	if c.ages.Len() != 0 || !first.ended {
		t.Error("closing leaves sessions")
	}
}

func TestTooManyAtATime(t *testing.T) {
	b, _, url := webBench(t, nil)
	session := openSession(t, url)
	done := make(chan struct{})
	for i := range maxSlots {
		go func() {
			postTo(t, t.Context(), url, session, postedCall(i+2, "gate", `{"tag":"a"}`))
			done <- struct{}{}
		}()
	}
	for range maxSlots {
		<-b.Started
	}
	resp, body := postTo(t, t.Context(), url, session, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("one too many: %s %s", resp.Status, body)
	}
	close(b.Gate("a"))
	for range maxSlots {
		<-done
	}
	if resp, body := postTo(t, t.Context(), url, session, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %s %s", resp.Status, body)
	}
}

// TestHangUpAfterReadTimeout: the time to send a message does not limit its call,
// and a Hang-up after it is noticed.
func TestHangUpAfterReadTimeout(t *testing.T) {
	b, _, url := webBench(t, func(s *http.Server) { s.ReadTimeout = 100 * time.Millisecond })
	session := openSession(t, url)
	ctx, hangUp := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { postTo(t, ctx, url, session, postedCall(2, "gate", `{"tag":"a"}`)); close(over) }()
	<-b.Started
	time.Sleep(300 * time.Millisecond)
	if got := b.Seen(); got != "+a" {
		t.Fatalf("the call ended with the time to read: %s", got)
	}
	hangUp()
	<-over
	for deadline := time.Now().Add(Hang); b.Seen() != "+a -a"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the call runs on")
		}
	}
}

func TestSlowBody(t *testing.T) {
	_, _, url := webBench(t, func(s *http.Server) { s.ReadTimeout = 100 * time.Millisecond })
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), PathMCP))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("a body that does not come: %v %v", resp, err)
	}
}

func TestUnannouncedOversize(t *testing.T) {
	_, _, url := webBench(t, nil)
	req, _ := http.NewRequest(http.MethodPost, url, io.MultiReader(strings.NewReader(strings.Repeat(" ", jsonrpc.MaxMessage)), strings.NewReader("{}")))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body without a length: %v %v", resp, err)
	}
}

// TestAskOverHTTP: a question goes out on the answer of the call that asks, and
// the response comes with a request of its own.
func TestAskOverHTTP(t *testing.T) {
	_, _, url := webBench(t, nil)
	session := openSession(t, url)
	req, _ := http.NewRequest(http.MethodPost, url, strings.NewReader(postedCall(2, "ask", `{}`)))
	req.Header = http.Header{"Content-Type": {"application/json"}, headerSession: {session}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	var seen []string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			seen = append(seen, data)
			if len(seen) == 1 {
				stranger := openSession(t, url)
				postTo(t, t.Context(), url, stranger, `{"jsonrpc":"2.0","id":"srv-1","result":{"action":"decline"}}`)
				r, _ := postTo(t, t.Context(), url, session, `{"jsonrpc":"2.0","id":"srv-1","result":{"action":"accept"}}`)
				if r.StatusCode != http.StatusAccepted {
					t.Error(r.Status)
				}
			}
		}
	}
	if len(seen) != 2 || !strings.Contains(seen[0], `"method":"elicitation/create"`) || !strings.Contains(seen[1], `"accept"`) {
		t.Errorf("the stream had %q", seen)
	}
}

func TestIDs(t *testing.T) {
	b, _, url := webBench(t, nil)
	session := openSession(t, url)
	over := make(chan string)
	go func() {
		_, body := postTo(t, t.Context(), url, session, postedCall(7, "gate", `{"tag":"a"}`))
		over <- body
	}()
	<-b.Started
	resp, body := postTo(t, t.Context(), url, session, postedCall(7, "noop", `{}`))
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "request id 7 is already in flight") {
		t.Errorf("the same id again: %s %s", resp.Status, body)
	}
	if _, body := postTo(t, t.Context(), url, session, strings.Replace(postedCall(7, "noop", `{}`), `"id":7`, `"id":"7"`, 1)); !strings.Contains(body, `"id":"7","result"`) {
		t.Errorf("the same id as a text: %s", body)
	}
	postTo(t, t.Context(), url, session, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	if body := <-over; !strings.Contains(body, "cancelled") {
		t.Errorf("the cancelled call: %s", body)
	}
}

func TestTokens(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"0123456789abcdef\r\n", "0123456789abcdef"}, {"0123456789abcde", ""}, {"\n", ""}, {"", ""},
		{"0123456789 abcdef", ""}, {"0123456789abcdéf", ""}, {"0123456789abcdef\n\n", "0123456789abcdef"},
	} {
		if got, err := ParseToken(c.text); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q is %q, %v", c.text, got, err)
		}
	}
	for header, want := range map[string]string{"Bearer x": "x", "bearer  x": "x", "Basic x": "", "Bearer": "", "": "", "x": ""} {
		if got := bearer(header); got != want {
			t.Errorf("%q holds %q, want %q", header, got, want)
		}
	}
}

// FuzzPost posts what it likes, with and without a session: nothing breaks, and
// every refusal is a JSON-RPC error.
func FuzzPost(f *testing.F) {
	for _, seed := range []string{hello, "", "{", "[]", `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"x"}`,
		`{"jsonrpc":"2.0","id":"srv-1","error":{}}`, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, postedCall(3, "echo", `{"text":"x"}`)} {
		f.Add(seed, true, "2026-07-28")
		f.Add(seed, false, "")
	}
	h, web := newSite(f.Context(), New())
	k := h.clients.create()
	h.clients.keep(k)
	f.Fuzz(func(t *testing.T, body string, inSession bool, version string) {
		if strings.Contains(body, "gate") || strings.Contains(body, "lane") || strings.Contains(body, "deaf") || strings.Contains(body, "ask") {
			return // they wait for somebody
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+PathMCP, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if inSession {
			r.Header.Set(headerSession, k.SessionID())
		}
		r.Header.Set("MCP-Protocol-Version", version)
		w := httptest.NewRecorder()
		web.ServeHTTP(w, r)
		if w.Code >= 500 || w.Code >= 400 && !strings.Contains(w.Body.String(), `"error":{`) {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
	})
}
