package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// A site is one process of the binary that serves over HTTP.
type site struct {
	*process
	url  string // where MCP is
	base string // the same, without the path
}

// listening is the one line that such a server writes.
var listening = regexp.MustCompile(`(?m)^perstack-base: listening on ((https?://[^/\n]+)(/\w+)|unix:.+)$`)

// startSite launches the binary on a free port of loopback.
func startSite(t testing.TB, dir, transport string, args ...string) *site {
	t.Helper()
	return startSiteOf(t, binary, dir, append([]string{"serve", "--transport", transport, "--listen", "127.0.0.1:0"}, args...)...)
}

func startSiteOf(t testing.TB, binary, dir string, args ...string) *site {
	t.Helper()
	s := &site{process: &process{t: t, cmd: exec.Command(binary, args...), exited: make(chan struct{})}}
	s.cmd.Dir = dir
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan []string, 1)
	go s.watch(stderr, found)
	t.Cleanup(s.kill)
	select {
	case line := <-found:
		s.url, s.base = line[1], line[2]
	case <-s.exited:
		t.Fatalf("the server ended: %s", s.stderr.String())
	case <-time.After(hangGuard):
		t.Fatal("the server does not listen")
	}
	return s
}

// watch keeps what the server says and finds where it listens.
func (s *site) watch(stderr io.Reader, found chan<- []string) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		s.stderr.WriteString(lines.Text() + "\n")
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			found <- m
		}
	}
	s.cmd.Wait()
	close(s.exited)
}

// browserless is how the tests speak HTTP: many connections, no proxy.
var browserless = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

// A visitor is the HTTP side of one client.
type visitor struct {
	*client
	site    *site
	token   string
	session string // of legacy clients, once it is known

	flight  sync.Map // id -> context.CancelFunc
	pending sync.WaitGroup
}

// visit makes a client of Streamable HTTP.
func visit(s *site, modern bool) *visitor {
	v := &visitor{client: newClient(s.process), site: s}
	v.modern = modern
	v.deliver = v.post
	v.t.Cleanup(v.leave) // before the server is ended: what nobody waits for any more is no error
	return v
}

func (v *visitor) leave() {
	v.flight.Range(func(_, cancel any) bool {
		cancel.(context.CancelFunc)()
		return true
	})
	v.pending.Wait()
}

// post sends one message. Requests run on in the background, one by one.
func (v *visitor) post(line []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name, TaskID string }
	}
	json.Unmarshal(line, &m)
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.site.url, bytes.NewReader(line))
	if err != nil {
		v.t.Fatal(err)
	}
	v.dress(req, m.Method, m.Params.Name+m.Params.TaskID)
	if m.ID == nil || m.Method == "initialize" {
		v.exchange(req)
		cancel()
		return
	}
	v.flight.Store(string(m.ID), cancel)
	v.pending.Go(func() {
		defer cancel()
		v.exchange(req)
	})
}

func (v *visitor) dress(req *http.Request, method, name string) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if v.token != "" {
		req.Header.Set("Authorization", "Bearer "+v.token)
	}
	if v.modern {
		req.Header.Set("MCP-Protocol-Version", modernVersion)
		req.Header.Set("Mcp-Method", method)
		if name != "" {
			req.Header.Set("Mcp-Name", name)
		}
		return
	}
	if v.session != "" {
		req.Header.Set("Mcp-Session-Id", v.session)
		req.Header.Set("MCP-Protocol-Version", legacyVersion)
	}
}

// exchange takes in what comes back, one message or many.
func (v *visitor) exchange(req *http.Request) {
	resp, err := browserless.Do(req)
	if err != nil {
		if req.Context().Err() == nil {
			v.t.Errorf("no answer: %v", err)
		}
		return
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		v.session = id
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		readEvents(resp.Body, func(_, data string) { v.take([]byte(data)) })
		return
	}
	body, err := io.ReadAll(resp.Body)
	if len(body) > 0 && err == nil {
		v.take(body)
	}
}

// hangUp closes the connection of a request.
func (v *visitor) hangUp(id string) {
	cancel, _ := v.flight.Load(id)
	cancel.(context.CancelFunc)()
}

// readEvents reads server-sent events until the stream ends.
func readEvents(body io.Reader, event func(name, data string)) {
	lines := bufio.NewReaderSize(body, 1<<20)
	var name, data string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		switch line = strings.TrimRight(line, "\r\n"); {
		case line == "":
			if data != "" {
				event(name, data)
			}
			name, data = "", ""
		case strings.HasPrefix(line, "event: "):
			name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			data = line[len("data: "):]
		}
	}
}

// A listener is a client of HTTP+SSE.
type listener struct {
	*client
	hangUp context.CancelFunc
	over   chan struct{} // closed when the stream has ended
}

// listen opens a stream of HTTP+SSE and waits for its address.
func listen(s *site) *listener {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &listener{client: newClient(s.process), hangUp: cancel, over: make(chan struct{})}
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	resp, err := browserless.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatal(resp, err)
	}
	address := make(chan string, 1)
	go func() {
		defer close(l.over)
		defer resp.Body.Close()
		readEvents(resp.Body, func(name, data string) {
			if name == "endpoint" {
				address <- s.base + data
				return
			}
			l.take([]byte(data))
		})
	}()
	select {
	case url := <-address:
		l.deliver = func(line []byte) { deliverTo(s.t, url, line) }
	case <-time.After(hangGuard):
		s.t.Fatal("the stream names no address")
	}
	return l
}

func deliverTo(t testing.TB, url string, line []byte) {
	t.Helper()
	resp, err := browserless.Post(url, "application/json", bytes.NewReader(line))
	if err != nil {
		t.Errorf("posting to the stream: %v", err)
		return
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		t.Errorf("the stream answered %s", resp.Status)
	}
}
