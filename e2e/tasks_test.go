//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const tasksExtension = "io.modelcontextprotocol/tasks"

// takesTasks is what a request says whose client takes tasks.
var takesTasks = map[string]any{"io.modelcontextprotocol/clientCapabilities": map[string]any{
	"extensions": map[string]any{tasksExtension: map[string]any{}},
}}

// A task is one as the client is shown it.
type task struct {
	ResultType    string          `json:"resultType"`
	TaskID        string          `json:"taskId"`
	Status        string          `json:"status"`
	StatusMessage string          `json:"statusMessage"`
	TTL           *int64          `json:"ttlMs"`
	Result        json.RawMessage `json:"result"`
}

// ask sends one request that takes tasks and returns its answer.
func (c *client) ask(method string, params map[string]any) message {
	c.t.Helper()
	all := maps.Clone(params)
	all["_meta"] = takesTasks
	_, answer := c.send(method, all)
	return c.wait(answer)
}

func (c *client) about(method, id string) message {
	c.t.Helper()
	return c.ask(method, map[string]any{"taskId": id})
}

// begin runs a command that must become a task.
func (c *client) begin(line string, extra ...string) task {
	c.t.Helper()
	m := c.ask("tools/call", callParams("exec", run(line, extra...)))
	var v task
	if json.Unmarshal(m.Result, &v) != nil || v.ResultType != "task" || v.TaskID == "" || v.Status != "working" || v.TTL != nil {
		c.t.Fatalf("no task: %s %v", m.Result, m.Error)
	}
	return v
}

// look shows a task.
func (c *client) look(id string) (v task) {
	c.t.Helper()
	m := c.about("tasks/get", id)
	if json.Unmarshal(m.Result, &v) != nil || v.ResultType != "complete" || v.TaskID != id {
		c.t.Fatalf("tasks/get: %s %v", m.Result, m.Error)
	}
	return v
}

// until looks at a task until it has the status.
func (c *client) until(id, status string) task {
	c.t.Helper()
	deadline := time.Now().Add(hangGuard)
	for {
		v := c.look(id)
		if v.Status == status {
			return v
		}
		if v.Status != "working" || time.Now().After(deadline) {
			c.t.Fatalf("%+v, want %s", v, status)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// refused wants an error with this code whose message says why.
func (c *client) refused(m message, code int, why string) {
	c.t.Helper()
	if m.Error == nil || m.Error.Code != code || !strings.Contains(m.Error.Message, why) {
		c.t.Errorf("%s %+v, want %d %s", m.Result, m.Error, code, why)
	}
}

// onEach runs a test against servers of both kinds, with either mechanism of the
// sandbox; another makes one more client.
func onEach(t *testing.T, args []string, test func(t *testing.T, dir string, c *client, another func() *client)) {
	for _, mode := range []string{"auto", "landlock"} {
		args := append([]string{"--sandbox", mode}, args...)
		t.Run("stdio "+mode, func(t *testing.T) {
			t.Parallel()
			dir := workspace(t)
			c := start(t, dir, append([]string{"serve"}, args...)...)
			c.modern = true
			test(t, dir, c, func() *client { return c })
		})
		t.Run("http "+mode, func(t *testing.T) {
			t.Parallel()
			dir := workspace(t)
			s := startSite(t, dir, "http", args...)
			another := func() *client { return visit(s, true).client }
			test(t, dir, another(), another)
		})
	}
}

// TestTasks goes through the life of tasks.
func TestTasks(t *testing.T) {
	confined(t)
	onEach(t, []string{"--task-after", "0"}, func(t *testing.T, dir string, c *client, another func() *client) {
		haveResults(t, c)
		v := c.begin(stubborn + "; wait")
		left := pids(t, dir, "leader", "child", "daemon")
		areShown(t, dir, c, another)
		areRefused(t, c, v)
		if !alive(left[0]) || c.look(v.TaskID).Status != "working" {
			t.Error("a cancel that was refused cancelled the task")
		}

		// A cancel ends everything that the command has started, and can be repeated.
		for range 2 {
			if m := c.about("tasks/cancel", v.TaskID); !strings.Contains(string(m.Result), `"resultType":"complete"`) || strings.Contains(string(m.Result), "status") {
				t.Errorf("%s %v", m.Result, m.Error)
			}
		}
		gone(t, left)
		if v = c.until(v.TaskID, "cancelled"); v.Result != nil {
			t.Errorf("%s", v.Result)
		}
	})
}

// haveResults: they are what a direct call answers, for a command that succeeds and
// for one that does not.
func haveResults(t *testing.T, c *client) {
	t.Helper()
	for _, line := range []string{"echo out; echo err >&2; sleep 0.3", "echo out; sleep 0.3; exit 3"} {
		direct := c.request("tools/call", callParams("exec", run(line)))
		v := c.begin(line)
		if v = c.until(v.TaskID, "completed"); string(v.Result) != string(direct) || v.TTL == nil || *v.TTL < time.Hour.Milliseconds() {
			t.Errorf("%s, want %s", v.Result, direct)
		}
		if !strings.HasPrefix(v.StatusMessage, "exit code ") {
			t.Error(v.StatusMessage)
		}
	}
}

// areShown: what a command prints last is seen, also by two who look at once.
func areShown(t *testing.T, dir string, c *client, another func() *client) {
	t.Helper()
	loud := c.begin("echo first; echo second; echo $$ > loud; sleep 300")
	pids(t, dir, "loud")
	var both sync.WaitGroup
	for range 2 {
		other := another()
		both.Go(func() {
			for range 20 {
				if v := other.look(loud.TaskID); v.Status != "working" {
					t.Errorf("%+v", v)
				}
			}
		})
	}
	both.Wait()
	deadline := time.Now().Add(hangGuard)
	for c.look(loud.TaskID).StatusMessage != "second" {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", c.look(loud.TaskID))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// areRefused: nobody does anything to a task without the extension, nor what older
// revisions had.
func areRefused(t *testing.T, c *client, v task) {
	t.Helper()
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		_, answer := c.send(method, map[string]any{"taskId": v.TaskID, "inputResponses": map[string]any{}})
		m := c.wait(answer)
		c.refused(m, -32021, tasksExtension)
		if m.Error != nil && string(m.Error.Data) != `{"requiredCapabilities":{"extensions":{"`+tasksExtension+`":{}}}}` {
			t.Errorf("%s", m.Error.Data)
		}
	}
	c.refused(c.about("tasks/get", "task-0-0"), -32602, "unknown or has expired")
	c.refused(c.about("tasks/list", ""), -32601, "")
	c.refused(c.about("tasks/result", v.TaskID), -32601, "")
}

// TestQuickCallsAreNoTasks: nor are those of clients that take none, those of older
// revisions, and those of other tools.
func TestQuickCallsAreNoTasks(t *testing.T) {
	onEach(t, nil, func(t *testing.T, dir string, c *client, another func() *client) {
		if m := c.ask("tools/call", callParams("exec", run("echo quick"))); !strings.Contains(string(m.Result), `"output":"quick\n"`) {
			t.Errorf("%s %v", m.Result, m.Error)
		}
	})
	t.Run("at once", func(t *testing.T) {
		dir := workspace(t)
		c := start(t, dir, "serve", "--task-after", "0")
		c.modern = true
		params := callParams("exec", run("sleep 0.3; echo done"))
		params["task"] = map[string]any{"ttl": 5}
		if got := c.request("tools/call", params); !strings.Contains(string(got), `"output":"done\n"`) {
			t.Errorf("%s", got)
		}
		if m := c.ask("tools/call", callParams("todo", json.RawMessage(`{"newTodos":["x"]}`))); !strings.Contains(string(m.Result), `"title":"x"`) {
			t.Errorf("%s", m.Result)
		}
		if got := c.request("server/discover", map[string]any{}); !strings.Contains(string(got), `"`+tasksExtension+`":{}`) {
			t.Errorf("%s", got)
		}
		old := start(t, dir, "serve", "--task-after", "0")
		if got := old.initialize(); strings.Contains(string(got), tasksExtension) {
			t.Errorf("%s", got)
		}
		params["_meta"] = takesTasks
		if got := old.request("tools/call", params); !strings.Contains(string(got), `"output":"done\n"`) {
			t.Errorf("%s", got)
		}
		_, answer := old.send("tasks/get", map[string]any{"taskId": "x"})
		old.refused(old.wait(answer), -32601, "")
	})
}

// TestTasksAndTheirClients: the command is its client's until it is a task, and
// nobody's afterwards.
func TestTasksAndTheirClients(t *testing.T) {
	confined(t)
	dir := workspace(t)
	late := startSite(t, dir, "http")
	v := visit(late, true)
	params := callParams("exec", run("echo $$ > early; sleep 300"))
	params["_meta"] = takesTasks
	id, _ := v.send("tools/call", params)
	early := pids(t, dir, "early")
	v.hangUp(id)
	gone(t, early)

	s := startSite(t, dir, "http", "--task-after", "0", "--task-ttl", "4s")
	first := visit(s, true)
	made := first.begin("sleep 0.5; echo late")
	first.leave()
	browserless.CloseIdleConnections()
	second := visit(s, true)
	if got := second.until(made.TaskID, "completed"); !strings.Contains(string(got.Result), "late") {
		t.Errorf("%+v", got)
	}
	deadline := time.Now().Add(hangGuard)
	for second.about("tasks/get", made.TaskID).Error == nil {
		if time.Now().After(deadline) {
			t.Fatal("a result does not expire")
		}
		time.Sleep(50 * time.Millisecond)
	}
	second.refused(second.about("tasks/get", made.TaskID), -32602, "unknown or has expired")

	other := startSite(t, dir, "http", "--task-after", "0")
	v = visit(other, true)
	v.refused(v.about("tasks/get", made.TaskID), -32602, "belongs to another server")
	v.refused(v.about("tasks/cancel", made.TaskID), -32602, "belongs to another server")
	v.refused(v.ask("tasks/update", map[string]any{"taskId": made.TaskID, "inputResponses": map[string]any{}}), -32602, "belongs to another server")

	// What its command leaves running ends with the task, as it would with a request.
	leaving := v.begin("sleep 300 & echo $! > behind; sleep 0.5")
	behind := pids(t, dir, "behind")
	if !alive(behind[0]) {
		t.Error("it ended before the task")
	}
	v.until(leaving.TaskID, "completed")
	gone(t, behind)
}

// TestTasksEndWithTheServer: nothing of a task survives, however it resists.
func TestTasksEndWithTheServer(t *testing.T) {
	confined(t)
	for name, end := range map[string]func(c *client){
		"end of input": func(c *client) { c.in.Close() },
		"SIGTERM":      func(c *client) { c.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGKILL":      func(c *client) { c.cmd.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, []string{"--task-after", "0"}, func(t *testing.T, dir string, c *client, another func() *client) {
				if c.in == nil && name == "end of input" {
					t.Skip("there is no input over HTTP")
				}
				c.begin(stubborn)
				ids := pids(t, dir, "leader", "child", "daemon")
				end(c)
				c.end()
				gone(t, ids)
			})
		})
	}
}

// TestTaskHeaders: a balancer finds the way of a request by its headers, so they are right.
func TestTaskHeaders(t *testing.T) {
	s := startSite(t, workspace(t), "http")
	v := visit(s, true)
	for _, c := range []struct {
		method, params, name string
		status, code         int
	}{
		{"tasks/get", `"taskId":"x"`, "x", 400, -32602},
		{"tasks/get", `"taskId":"x"`, "", 400, -32020},
		{"tasks/get", `"taskId":"x"`, "y", 400, -32020},
		{"tasks/get", `"taskId":5`, "5", 400, -32020},
		{"tasks/get", `"x":1`, "x", 400, -32020},
		{"tasks/cancel", `"taskId":"x"`, "", 400, -32020},
		{"tasks/cancel", `"taskId":"x"`, "=?base64?eA==?=", 400, -32602},
		{"tasks/update", `"taskId":"x"`, "z", 400, -32020},
		{"tasks/update", `"taskId":"x"`, "x", 400, -32602},
		{"tasks/list", `"x":1`, "", 404, -32601},
		{"tasks/result", `"taskId":"x"`, "", 404, -32601},
	} {
		meta, _ := json.Marshal(v.stamped(map[string]any{"_meta": takesTasks}).(map[string]any)["_meta"])
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":%s}}`, c.method, c.params, meta)
		req, _ := http.NewRequest(http.MethodPost, s.url, strings.NewReader(body))
		v.dress(req, c.method, c.name)
		resp, err := browserless.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		var m message
		if json.Unmarshal(raw, &m) != nil || resp.StatusCode != c.status || m.Error == nil || m.Error.Code != c.code {
			t.Errorf("%s %s as %q: %d %s, want %d and %d", c.method, c.params, c.name, resp.StatusCode, raw, c.status, c.code)
		}
	}
}

// TestTaskSubscriptions: who names a task is told how it is getting on.
func TestTaskSubscriptions(t *testing.T) {
	onEach(t, []string{"--task-after", "0"}, func(t *testing.T, dir string, c *client, another func() *client) {
		v := c.begin("echo on; sleep 1; echo off")
		filter := map[string]any{"taskIds": []string{v.TaskID, "unknown"}}
		_, answer := c.send("subscriptions/listen", map[string]any{"notifications": filter})
		c.refused(c.wait(answer), -32021, tasksExtension)
		c.refused(c.ask("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": 5}}), -32602, "taskIds")
		c.mu.Lock()
		c.notes = nil
		c.mu.Unlock()
		id, _ := c.send("subscriptions/listen", map[string]any{"notifications": filter, "_meta": takesTasks})
		deadline := time.Now().Add(hangGuard)
		for {
			c.mu.Lock()
			notes := append([]message(nil), c.notes...)
			c.mu.Unlock()
			last := ""
			for i, n := range notes {
				last = string(n.Params)
				want, method := `"taskId":"`+v.TaskID+`"`, "notifications/tasks"
				if i == 0 {
					want, method = `"taskIds":["`+v.TaskID+`"]`, "notifications/subscriptions/acknowledged"
				}
				if n.Method != method || !strings.Contains(last, want) || !strings.Contains(last, `"io.modelcontextprotocol/subscriptionId":`+id) || strings.Contains(last, "resultType\":\"task") {
					t.Fatalf("note %d: %s %s", i, n.Method, last)
				}
			}
			if strings.Contains(last, `"completed"`) && strings.Contains(last, `"output":"on\noff\n"`) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d notes, the last is %s", len(notes), last)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
}
