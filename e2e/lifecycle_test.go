//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

func TestEndOfInputIdle(t *testing.T) {
	c := start(t, workspace(t))
	c.initialize()
	c.in.Close()
	if code := c.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, c.stderr.String())
	}
	if c.stderr.Len() > 0 {
		t.Errorf("standard error must stay silent: %s", c.stderr.String())
	}
}

// TestEndOfInputAnswersAll pipes many calls and ends the input at once, twenty times.
func TestEndOfInputAnswersAll(t *testing.T) {
	for range map[bool]int{true: 3, false: 20}[testlevel.Quick()] {
		c := start(t, workspace(t))
		c.initialize()
		answers := make([]chan message, 300)
		for i := range answers {
			_, answers[i] = c.send("tools/call", callParams("todo", json.RawMessage(fmt.Sprintf(`{"newTodos":["task %d"]}`, i))))
		}
		c.in.Close()
		for i, answer := range answers {
			m := c.wait(answer)
			var result struct{ Content []struct{ Text string } }
			if err := json.Unmarshal(m.Result, &result); err != nil || len(result.Content) == 0 {
				t.Fatalf("call %d: %s (%v)", i, m.Result, err)
			}
			if want := fmt.Sprintf(`{"id":%d,"title":"task %d","completed":false}]}`, i, i); !strings.HasSuffix(result.Content[0].Text, want) {
				t.Fatalf("call %d took effect out of order: %s", i, result.Content[0].Text)
			}
		}
		if code := c.end(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
	}
}

// TestNothingSurvives: however the server ends, so does everything it started.
func TestNothingSurvives(t *testing.T) {
	ends := map[string]func(c *client){
		"end of input": func(c *client) { c.in.Close() },
		"SIGTERM":      func(c *client) { c.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGINT twice": func(c *client) {
			c.cmd.Process.Signal(syscall.SIGINT)
			time.Sleep(100 * time.Millisecond)
			c.cmd.Process.Signal(syscall.SIGINT)
		},
		"SIGKILL": func(c *client) { c.cmd.Process.Kill() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := workspace(t)
			c := start(t, dir, "serve")
			c.initialize()
			c.send("tools/call", callParams("exec", run(stubborn)))
			ids := pids(t, dir, "leader", "child", "daemon")
			end(c)
			c.end()
			gone(t, ids)
		})
	}
}

func TestCancelKillsTheTree(t *testing.T) {
	dir := workspace(t)
	c := start(t, dir, "serve")
	c.initialize()
	id, _ := c.send("tools/call", callParams("exec", run(stubborn)))
	ids := pids(t, dir, "leader", "child", "daemon")
	c.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
	gone(t, ids)
	if _, err := c.call("todo", json.RawMessage(`{}`)); err != nil {
		t.Error("the server must go on after a cancel:", err)
	}
}

func TestTimeoutKillsTheTree(t *testing.T) {
	dir := workspace(t)
	c := start(t, dir, "serve")
	c.initialize()
	result, err := c.call("exec", run(stubborn, "timeout=300"))
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, result); !strings.Contains(got, `"code":"timed_out"`) {
		t.Errorf("got %s", got)
	}
	goneIn(t, dir, "leader", "child", "daemon")
}

// TestBackgroundGoesOn: what a command leaves running lives until the server ends.
func TestBackgroundGoesOn(t *testing.T) {
	dir := workspace(t)
	c := start(t, dir, "serve")
	c.initialize()
	if _, err := c.call("exec", run(`sleep 300 & echo $! > child`)); err != nil {
		t.Fatal(err)
	}
	ids := pids(t, dir, "child")
	if !alive(ids[0]) {
		t.Error("the background process ended with its command")
	}
	c.in.Close()
	c.end()
	gone(t, ids)
}

func TestSlowCallDelaysNothing(t *testing.T) {
	c := start(t, workspace(t), "serve")
	c.initialize()
	_, slow := c.send("tools/call", callParams("exec", run("sleep 20")))
	if _, err := c.call("todo", json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-slow:
		t.Error("the slow call answered first")
	default:
	}
}

// TestProgress asks for progress and gets the last line of output, rising
// numbers, and one last report before the result.
func TestProgress(t *testing.T) {
	c := start(t, workspace(t), "serve")
	c.initialize()
	if _, err := c.call("exec", run("true")); err != nil { // the first command takes longer to begin
		t.Fatal(err)
	}
	params := callParams("exec", run("echo one; sleep 0.7; echo two; sleep 0.7"))
	params["_meta"] = map[string]any{"progressToken": "tok"}
	c.request("tools/call", params)
	c.mu.Lock()
	defer c.mu.Unlock()
	var messages []string
	last := -1.0
	for _, note := range c.notes {
		var p struct {
			ProgressToken string
			Progress      float64
			Message       string
		}
		if json.Unmarshal(note.Params, &p) != nil || p.ProgressToken != "tok" || p.Progress <= last {
			t.Errorf("bad progress %s after %v", note.Params, last)
		}
		last = p.Progress
		if p.Message != "running for 0 s" { // the machine is busy: nothing has been printed yet
			messages = append(messages, p.Message)
		}
	}
	if len(messages) < 3 || messages[0] != "one" || messages[len(messages)-2] != "two" || !strings.HasPrefix(messages[len(messages)-1], "exit code 0 after ") {
		t.Errorf("progress said %q", messages)
	}
}
