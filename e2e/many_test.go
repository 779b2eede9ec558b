package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Bounds of memory, in KB, of a server that many use.
const (
	manyClientsKB  = 150 << 10
	manySessionsKB = 80 << 10
)

// TestManyClients lets 64 clients of both eras make 100 calls each, every fifth
// of them a command, and looks at every answer.
func TestManyClients(t *testing.T) {
	s := startSite(t, workspace(t), "http")
	var all sync.WaitGroup
	for n := range 64 {
		all.Go(func() {
			v := visit(s, n%2 == 0)
			v.initialize()
			for i := range 100 {
				if err := oneOfMany(v, n, i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if got := peakKB(t, s.cmd.Process.Pid); got > manyClientsKB {
		t.Errorf("the server grew to %d KB, more than %d", got, manyClientsKB)
	}
}

func oneOfMany(v *visitor, n, i int) error {
	tool, args, want := "writeTextFile", fmt.Sprintf(`{"path":"f%d","text":"%d"}`, n, i), fmt.Sprintf(`"text":"%d"}`, i)
	switch i % 5 {
	case 0:
		tool, args, want = "exec", string(run(fmt.Sprintf("echo %d-%d", n, i))), fmt.Sprintf(`{"output":"%d-%d\n"}`, n, i)
	case 1:
		tool, args, want = "readTextFile", fmt.Sprintf(`{"path":"missing-%d-%d"}`, n, i), fmt.Sprintf("File missing-%d-%d does not exist.", n, i)
	}
	_, answer := v.send("tools/call", callParams(tool, json.RawMessage(args)))
	var result struct{ Content []struct{ Text string } }
	m := v.wait(answer)
	if json.Unmarshal(m.Result, &result) != nil || len(result.Content) == 0 || !strings.Contains(result.Content[0].Text, want) {
		return fmt.Errorf("client %d, call %d: %s %v, want %s", n, i, m.Result, m.Error, want)
	}
	return nil
}

// TestAbandonedSessions opens 20,000 sessions that nobody uses again. The server
// keeps the last 10,000 at most, and the one that is used.
func TestAbandonedSessions(t *testing.T) {
	s := startSite(t, workspace(t), "http")
	v := visit(s, false)
	v.initialize()
	hello := []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`)
	first := ""
	var all sync.WaitGroup
	var opened atomic.Int64
	for worker := range 8 {
		all.Go(func() {
			for i := range 2500 {
				resp, err := browserless.Post(s.url, "application/json", bytes.NewReader(hello))
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Error(resp, err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if worker == 0 && i == 0 {
					first = resp.Header.Get("Mcp-Session-Id")
				}
				if opened.Add(1)%1000 == 0 {
					v.request("ping", nil)
				}
			}
		})
	}
	all.Wait()
	if got := residentKB(t, s.cmd.Process.Pid); got > manySessionsKB {
		t.Errorf("the server holds %d KB, more than %d", got, manySessionsKB)
	}
	old := visit(s, false)
	old.session = first
	_, answer := old.send("ping", nil)
	if m := v.wait(answer); m.Error == nil || !strings.Contains(m.Error.Message, "no such session") {
		t.Errorf("the first session of 20,000 is still there: %s", m.Result)
	}
	v.request("ping", nil)
}

// TestDescriptorsRunOut: with 1,024 of them as many sessions can run commands as README
// says, and idle ones are no matter. Another is told that there is no room; those that are
// there go on, and when they end, others can begin.
func TestDescriptorsRunOut(t *testing.T) {
	confined(t)
	for i, mode := range []string{"auto", "landlock"} {
		t.Run(mode, func(t *testing.T) {
			promised := sessionsInReadme(t)[i]
			few := filepath.Join(t.TempDir(), "few")
			if err := os.WriteFile(few, []byte("#!/bin/sh\nulimit -n 1024 && exec "+binary+" \"$@\"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			s := startSiteOf(t, few, workspace(t), "--transport", "http", "--listen", "127.0.0.1:0", "--sandbox", mode)
			session := func() *visitor {
				v := visit(s, false)
				v.initialize()
				return v
			}
			for range 300 {
				session()
			}
			var running []*visitor
			refused := ""
			for refused == "" && len(running) < 1024 {
				v := session()
				if got := v.mustCall("exec", string(run("echo ran")), ""); strings.Contains(got, "ran") {
					running = append(running, v)
				} else {
					refused = got
				}
			}
			if len(running) < promised || !strings.Contains(refused, "there is no room to confine the commands of another session") || !strings.Contains(refused, "ulimit -n") {
				t.Fatalf("after %d sessions, where README promises %d: %s", len(running), promised, refused)
			}
			running[0].mustCall("exec", string(run("echo on; cat /etc/shadow")), "blocked by the sandbox")
			for _, v := range running[1:] {
				end, _ := http.NewRequest(http.MethodDelete, s.url, nil)
				end.Header.Set("Mcp-Session-Id", v.session)
				if resp, err := browserless.Do(end); err != nil || resp.StatusCode != http.StatusOK {
					t.Fatal(resp, err)
				}
			}
			session().mustCall("exec", string(run("echo again")), "again")
		})
	}
}

// sessionsInReadme is how many sessions README says can have run a command, by default and
// with threads.
func sessionsInReadme(t *testing.T) (n [2]int) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile("(\\d+) that have run a command \\((\\d+) with `--sandbox landlock`\\)").FindSubmatch(readme)
	if said == nil {
		t.Fatal("README does not say how many sessions can have run a command")
	}
	for i := range n {
		n[i], _ = strconv.Atoi(string(said[i+1]))
	}
	return n
}

// TestSessionsAreApart: what one session does is nobody else's.
func TestSessionsAreApart(t *testing.T) {
	dir := workspace(t)
	s := startSite(t, dir, "http")
	a, b := visit(s, false), visit(s, false)
	a.initialize()
	b.initialize()
	a.mustCall("todo", `{"newTodos":["mine"]}`, `"mine"`)
	b.mustCall("todo", `{}`, `{"todos":[]}`)
	a.mustCall("exec", string(run(`echo $TMPDIR`)), "tmp")
	if x, y := a.mustCall("exec", string(run(`echo $TMPDIR`)), ""), b.mustCall("exec", string(run(`echo $TMPDIR`)), ""); x == y {
		t.Errorf("both have %s", x)
	}

	id, _ := a.send("tools/call", callParams("exec", run("echo $$ > running; exec sleep 300")))
	pid := pids(t, dir, "running")
	b.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
	stranger := visit(s, true)
	stranger.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
	b.request("ping", nil)
	if !alive(pid[0]) {
		t.Error("another client's cancel ended the command")
	}
	a.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
	gone(t, pid)

	a.send("tools/call", callParams("exec", run("echo $$ > second; exec sleep 300")))
	a.mustCall("exec", string(run("sleep 300 & echo $! > third")), "")
	left := pids(t, dir, "second", "third")
	end, _ := http.NewRequest(http.MethodDelete, s.url, nil)
	end.Header.Set("Mcp-Session-Id", a.session)
	for _, want := range []int{http.StatusOK, http.StatusNotFound} {
		if resp, err := browserless.Do(end); err != nil || resp.StatusCode != want {
			t.Errorf("DELETE: %v %v, want %d", resp, err, want)
		}
	}
	gone(t, left)
	b.mustCall("todo", `{}`, `{"todos":[]}`)
}

// mustCall runs one tool, whose answer must hold want, and returns the text.
func (v *visitor) mustCall(tool, args, want string) string {
	v.t.Helper()
	result, err := v.call(tool, json.RawMessage(args))
	if err != nil || !strings.Contains(text(v.t, result), want) {
		v.t.Errorf("%s %s: %v %v, want %s", tool, args, result, err, want)
	}
	return text(v.t, result)
}

// TestLists: a client without a session finds its list by the id it was given.
func TestLists(t *testing.T) {
	s := startSite(t, workspace(t), "http")
	v, other := visit(s, true), visit(s, false)
	other.initialize()
	made := v.mustCall("todo", `{"newTodos":["one"]}`, `"listId":"todo_`)
	id := givenID.FindStringSubmatch(made)[1]
	args := fmt.Sprintf(`{"listId":%q}`, id)
	v.mustCall("attemptCompletion", args, `{"remainingTodos":[{"id":0,"title":"one","completed":false}]}`)
	other.mustCall("todo", args, `{"todos":[{"id":0,"title":"one","completed":false}]}`)
	other.mustCall("todo", `{}`, `{"todos":[]}`)
	if again := v.mustCall("todo", `{}`, `"listId":"todo_`); strings.Contains(again, id) || strings.Contains(again, "one") {
		t.Errorf("a new list is not new: %s", again)
	}
	v.mustCall("clearTodo", args, `{"todos":[]}`)
	v.mustCall("todo", `{"listId":"x"}`, `Todo list \"x\" is unknown or has expired. Call todo without listId to start a new one.`)
}

// TestHangUpEndsCommands: a client that goes takes its commands with it.
func TestHangUpEndsCommands(t *testing.T) {
	hangUps := map[string]func(t *testing.T, dir string) (c *client, hangUp func(id string)){
		"http": func(t *testing.T, dir string) (*client, func(string)) {
			v := visit(startSite(t, dir, "http"), false)
			v.initialize()
			return v.client, v.hangUp
		},
		"http modern": func(t *testing.T, dir string) (*client, func(string)) {
			v := visit(startSite(t, dir, "http"), true)
			return v.client, v.hangUp
		},
		"sse": func(t *testing.T, dir string) (*client, func(string)) {
			l := listen(startSite(t, dir, "sse"))
			l.initialize()
			return l.client, func(string) { l.hangUp() }
		},
	}
	for name, begin := range hangUps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := workspace(t)
			c, hangUp := begin(t, dir)
			id, _ := c.send("tools/call", callParams("exec", run(stubborn)))
			ids := pids(t, dir, "leader", "child", "daemon")
			hangUp(id)
			gone(t, ids)
		})
	}
}

// TestLeftBehind: what a command of a modern request leaves running ends with
// the request, since nobody could ever end it.
func TestLeftBehind(t *testing.T) {
	dir := workspace(t)
	v := visit(startSite(t, dir, "http"), true)
	tmp := strings.TrimSpace(v.mustCall("exec", string(run("echo $TMPDIR > tmp; sleep 300 & echo $! > child")), ""))
	goneIn(t, dir, "child")
	if left, _ := filepath.Glob(tmp + "/*"); len(left) > 0 {
		t.Error(left)
	}
}

// TestSignalWithOpenStreams: running calls are answered, streams are closed, and
// nothing is left.
func TestSignalWithOpenStreams(t *testing.T) {
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		dir := workspace(t)
		s := startSite(t, dir, "http")
		v, modern := visit(s, false), visit(s, true)
		v.initialize()
		closed := openStream(t, s, v.session)
		_, subscribed := modern.send("subscriptions/listen", map[string]any{"notifications": map[string]any{"toolsListChanged": true}})
		_, answer := v.send("tools/call", callParams("exec", run(stubborn)))
		ids := pids(t, dir, "leader", "child", "daemon")
		s.cmd.Process.Signal(syscall.SIGTERM)
		if m := v.wait(answer); !strings.Contains(string(m.Result), `\"code\":\"cancelled\"`) {
			t.Errorf("the running call got %s", m.Result)
		}
		if m := modern.wait(subscribed); m.Error != nil {
			t.Errorf("the subscription got %v", m.Error)
		}
		await(t, closed)
		if code := s.end(); code != 0 {
			t.Errorf("exit code %d: %s", code, s.stderr.String())
		}
		gone(t, ids)
	})
	t.Run("sse", func(t *testing.T) {
		t.Parallel()
		dir := workspace(t)
		s := startSite(t, dir, "sse")
		l, idle := listen(s), listen(s)
		l.initialize()
		_, answer := l.send("tools/call", callParams("exec", run(stubborn)))
		ids := pids(t, dir, "leader", "child", "daemon")
		s.cmd.Process.Signal(syscall.SIGTERM)
		if m := l.wait(answer); !strings.Contains(string(m.Result), `\"code\":\"cancelled\"`) {
			t.Errorf("the running call got %s", m.Result)
		}
		await(t, l.over)
		await(t, idle.over)
		if code := s.end(); code != 0 {
			t.Errorf("exit code %d: %s", code, s.stderr.String())
		}
		gone(t, ids)
	})
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		dir := workspace(t)
		s := startSite(t, dir, "http")
		v := visit(s, true)
		id, _ := v.send("tools/call", callParams("exec", run(stubborn)))
		ids := pids(t, dir, "leader", "child", "daemon")
		s.cmd.Process.Signal(syscall.SIGTERM)
		time.Sleep(100 * time.Millisecond)
		v.hangUp(id) // so that the broken connection is no complaint
		s.cmd.Process.Signal(syscall.SIGTERM)
		if code := s.end(); code != 1 {
			t.Errorf("exit code %d", code)
		}
		gone(t, ids)
	})
}

// openStream opens the stream of a session; the channel is closed with it.
func openStream(t *testing.T, s *site, session string) chan struct{} {
	t.Helper()
	req, _ := http.NewRequest(http.MethodGet, s.url, nil)
	req.Header.Set("Mcp-Session-Id", session)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := browserless.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		defer resp.Body.Close()
		readEvents(resp.Body, func(string, string) {})
	}()
	return closed
}

func await(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(hangGuard):
		t.Error("the stream stays open")
	}
}

// TestProgressOnHTTP runs 100 commands at once that report progress: each report
// comes on the channel of its result, in order, the last one right before it.
func TestProgressOnHTTP(t *testing.T) {
	s := startSite(t, workspace(t), "http")
	legacy := visit(s, false)
	legacy.initialize()
	var all sync.WaitGroup
	var reports atomic.Int64
	for n := range 100 {
		all.Go(func() {
			v := visit(s, n%2 == 0)
			if !v.modern {
				v.session = legacy.session
				v.nextID = 1000 * n
			}
			params := callParams("exec", run(fmt.Sprintf("echo line %d; sleep 0.8", n)))
			params["_meta"] = map[string]any{"progressToken": n}
			_, answer := v.send("tools/call", params)
			if m := v.wait(answer); m.Error != nil {
				t.Error(m.Error)
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			if err := properProgress(v.notes, n); err != nil {
				t.Error(err)
			}
			reports.Add(int64(len(v.notes)))
			before := len(v.notes)
			time.AfterFunc(300*time.Millisecond, func() {
				v.mu.Lock()
				defer v.mu.Unlock()
				if len(v.notes) != before {
					t.Error("progress after the result")
				}
			})
		})
	}
	all.Wait()
	time.Sleep(400 * time.Millisecond)
	if reports.Load() < 150 {
		t.Errorf("100 commands made %d reports: none but the last of each", reports.Load())
	}
}

// properProgress checks the reports of one command.
func properProgress(notes []message, token int) error {
	last := -1.0
	for i, note := range notes {
		var p struct {
			ProgressToken int
			Progress      float64
			Message       string
		}
		if err := json.Unmarshal(note.Params, &p); err != nil || p.ProgressToken != token || p.Progress <= last {
			return fmt.Errorf("command %d, report %d: %s after %v (%v)", token, i, note.Params, last, err)
		}
		last = p.Progress
		if final := i == len(notes)-1; final != strings.HasPrefix(p.Message, "exit code 0 after ") {
			return fmt.Errorf("command %d, report %d of %d says %q", token, i+1, len(notes), p.Message)
		}
	}
	if len(notes) == 0 {
		return fmt.Errorf("command %d made no report", token)
	}
	return nil
}

// TestSessionsLeaveNothing: the run workspaces of sessions that are open when the
// server is told to end are gone when it has ended, however many files they hold.
func TestSessionsLeaveNothing(t *testing.T) {
	dir := workspace(t)
	write(t, filepath.Join(dir, "skills", "many", "SKILL.md"), skillNamed("many"))
	s := startSite(t, dir, "http")
	var trees []string
	for range 3 {
		v := visit(s, false)
		v.initialize()
		run := v.mustCall("skill_run", `{"skill":"many","command":"cd \"$WORKSPACE_DIR/work\" && for i in $(seq 1000); do : > $i; done; echo $WORKSPACE_DIR"}`, "stdout")
		var result struct{ Stdout string }
		if err := json.Unmarshal([]byte(run), &result); err != nil {
			t.Fatal(err)
		}
		tree := strings.TrimSpace(result.Stdout)
		if !exists(filepath.Join(tree, "work", "1000")) {
			t.Fatalf("no run workspace at %q: %s", tree, run)
		}
		trees = append(trees, tree)
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.stderr.String())
	}
	for _, tree := range trees {
		if exists(tree) {
			t.Errorf("the run workspace %s outlives the server", tree)
		}
	}
}
