package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/server/internal/servertest"
)

// showsViews is what a client declares that shows views.
const showsViews = `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`

// viewTools has every tool whose calls a view shows, but for one of the same name.
var viewTools = []string{"perstack", "vski.write", "baseagent", "skills", "echo", "terminal"}

// viewAsks is one conversation: a method and its params.
var viewAsks = [][2]string{
	{"server/discover", ``}, // or initialize
	{"tools/list", ``},
	{"resources/list", ``},
	{"resources/templates/list", ``},
	{"resources/read", `"uri":"ui://perstack-base/plan"`},
	{"resources/read", `"uri":"ui://perstack-base/none"`},
	viewCall("writeTextFile", `{"path":"a.txt","text":"one\ntwo\n"}`),
	viewCall("writeTextFile", `{"path":"a.txt","text":"one\ntwo\nthree\n"}`),
	viewCall("editTextFile", `{"path":"a.txt","oldText":"two","newText":"2"}`),
	viewCall("editTextFile", `{"path":"a.txt","oldText":"absent","newText":"2"}`),
	viewCall("editTextFile", `{"path":"a.txt","oldText":"one","newText":"one"}`),
	viewCall("write", `{"path":"b.txt","data":"b\n"}`),
	viewCall("write", `{"path":"b.txt","data":"a\n","start_line":1}`),
	viewCall("write", `{"path":"c.txt","data":"c\n","start_line":1}`),
	viewCall("write_file", `{"file_path":"d.txt","content":"d"}`),
	viewCall("apply_patch", `{"patch":"*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-2\n+two\n*** Update File: b.txt\n*** Move to: sub/b.txt\n@@\n-a\n+A\n b\n*** Delete File: c.txt\n*** Add File: e.txt\n+e\n*** End Patch"}`),
	viewCall("apply_patch", `{"patch":"nonsense"}`),
	viewCall("readTextFile", `{"path":"a.txt"}`),
	viewCall("todo", `{"newTodos":["read","write"],"completedTodos":[0]}`),
	viewCall("attemptCompletion", `{}`),
	viewCall("clearTodo", `{}`),
	viewCall("update_plan", `{"steps":[{"description":"read","status":"completed"}]}`),
	viewCall("update_plan", `{"steps":[{"description":"write","status":"in_progress"}],"explanation":"because"}`),
	viewCall("exec", `{"command":"sh","args":["-c","echo out; exit 3"],"env":{},"cwd":"","stdout":true,"stderr":true}`),
	viewCall("exec", `{"command":"none-such","args":[],"env":{},"cwd":"","stdout":true,"stderr":true}`),
	viewCall("shell_command", `{"command":"echo out"}`),
}

func viewCall(tool, args string) [2]string {
	return [2]string{"tools/call", `"name":"` + tool + `","arguments":` + args}
}

// A viewWay is one way to reach a server.
type viewWay struct {
	transport string // stdio, http or sse
	version   string
}

func (w viewWay) modern() bool { return w.version == "2026-07-28" }

var viewWays = []viewWay{
	{"stdio", "2025-06-18"}, {"stdio", "2025-11-25"}, {"stdio", "2026-07-28"}, {"http", "2025-11-25"}, {"http", "2026-07-28"},
}

// converse has the conversation with a new server, as a client with these
// capabilities, and returns the answers without what differs from run to run.
func (w viewWay) converse(t *testing.T, capabilities string) []string {
	t.Helper()
	dir := workspace(t)
	cfg := Config{Workspace: dir, Tools: viewTools, NoDiscover: true}
	var send func(id int, message, method, name string) string
	if w.transport == "stdio" {
		l := dialServer(t, newServer(t, cfg))
		send = func(_ int, message, _, _ string) string { l.Send(message); return l.Next() }
	} else {
		send = w.dialHTTP(t, cfg)
	}
	var answers []string
	if !w.modern() {
		answers = append(answers, send(0, strings.Replace(servertest.Greeting("0", w.version), `{"elicitation":{}}`, capabilities, 1), "initialize", ""))
	}
	for i, ask := range viewAsks {
		if i == 0 && !w.modern() {
			continue // answered above
		}
		params := []string{ask[1]}
		if w.modern() {
			params = append(params, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+capabilities+`}`)
		}
		body := strings.Trim(strings.Join(params, ","), ",")
		message := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, i+1, ask[0], body)
		var named struct{ Name, URI string }
		_ = json.Unmarshal([]byte("{"+ask[1]+"}"), &named)
		answers = append(answers, sameEachTime(send(i+1, message, ask[0], named.Name+named.URI), dir))
	}
	return answers
}

func sameEachTime(answer, dir string) string {
	answer = strings.ReplaceAll(answer, dir, "/work")
	answer = regexp.MustCompile(`(todo|plan)_[A-Za-z0-9_-]{10,}`).ReplaceAllString(answer, "${1}_id")
	return regexp.MustCompile(`"durationMs":\d+`).ReplaceAllString(answer, `"durationMs":0`)
}

// dialHTTP serves cfg over Streamable HTTP.
func (w viewWay) dialHTTP(t *testing.T, cfg Config) func(id int, message, method, name string) string {
	cfg.HTTP = &HTTP{Token: "0123456789abcdef"}
	s := newServer(t, cfg)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.ServeListener(t.Context(), ln) }()
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + cfg.HTTP.Token}}
	return func(_ int, message, method, name string) string {
		req, _ := http.NewRequest(http.MethodPost, "http://"+ln.Addr().String()+cfg.HTTP.Path(), strings.NewReader(message))
		req.Header = header
		if w.modern() {
			req.Header.Set("Mcp-Protocol-Version", w.version)
			req.Header.Set("Mcp-Method", method)
			req.Header.Del("Mcp-Name")
			if name != "" {
				req.Header.Set("Mcp-Name", name)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			header.Set("Mcp-Session-Id", id)
		}
		raw, _ := io.ReadAll(resp.Body)
		if m := regexp.MustCompile(`(?m)^data: (\{.*"result".*)$`).FindSubmatch(raw); m != nil {
			raw = m[1]
		}
		return strings.TrimSpace(string(raw))
	}
}

// TestViewsAreForThoseWhoShowThem: whoever does not declare the extension with the type
// of the views is answered, to the byte, as if there were none; whoever does, is told
// the same, and what is for views besides. What that is stands in testdata/views.json.
func TestViewsAreForThoseWhoShowThem(t *testing.T) {
	var first []byte
	for _, way := range viewWays {
		t.Run(way.transport+" "+way.version, func(t *testing.T) {
			plain := way.converse(t, `{}`)
			for _, part := range []string{"resourceUri", `"perstack-base/`, `"uri":"ui:`, "mcp-app"} {
				if all := strings.Join(plain, "\n"); strings.Contains(strings.ReplaceAll(all, `"data":{"uri":"ui:`, ""), part) {
					t.Errorf("%s is told to whoever shows no views", part)
				}
			}
			for _, near := range []string{
				`{"extensions":{"io.modelcontextprotocol/ui":{}}}`,
				`{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}}`,
				`{"experimental":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`,
			} {
				for i, answer := range way.converse(t, near) {
					if answer != plain[i] {
						t.Errorf("%s: %s\ngot  %.2000s\nwant %.2000s", near, viewAsks[i], answer, plain[i])
					}
				}
			}
			var parts []any
			for i, answer := range way.converse(t, showsViews) {
				part, rest := apart(t, answer)
				parts = append(parts, map[string]any{"ask": viewAsks[i][0] + " " + viewAsks[i][1], "views": part})
				if _, want := apart(t, plain[i]); !bytes.Equal(rest, want) && viewAsks[i][1] != viewAsks[4][1] {
					t.Errorf("%s\ngot  %.3000s\nwant %.3000s", viewAsks[i], rest, want)
				}
			}
			got := indented(t, parts)
			if first == nil {
				first = got
				golden(t, filepath.Join("..", "testdata", "views.json"), got)
			} else if !way.modern() && !bytes.Equal(got, first) { // with sessions, so with the same lists
				t.Errorf("%v differs from %v", way, viewWays[0])
			}
			if !bytes.Contains(got, []byte("+three")) {
				t.Error("there is no diff")
			}
		})
	}
}

// apart takes what is for views out of an answer; the length stands for a document.
func apart(t *testing.T, answer string) (views any, rest []byte) {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(answer), &all); err != nil {
		t.Fatalf("%v: %.500s", err, answer)
	}
	result, _ := all["result"].(map[string]any)
	found := map[string]any{}
	if meta, ok := result["_meta"].(map[string]any); ok {
		takeOut(meta, found, "perstack-base/")
		if len(meta) == 0 {
			delete(result, "_meta")
		}
	}
	if capabilities, ok := result["capabilities"].(map[string]any); ok {
		takeOut(capabilities["extensions"].(map[string]any), found, "io.modelcontextprotocol/ui")
		delete(result, "cacheScope") // of what differs: private
	}
	listed, _ := result["tools"].([]any)
	for _, one := range listed {
		tool := one.(map[string]any)
		if meta, ok := tool["_meta"].(map[string]any); ok && meta["ui"] != nil {
			found[tool["name"].(string)] = meta["ui"].(map[string]any)["resourceUri"]
			delete(meta, "ui")
			if len(meta) == 0 {
				delete(tool, "_meta")
			}
		}
	}
	if len(listed) > 0 {
		delete(result, "cacheScope") // of a list with views: private
	}
	if resources, ok := result["resources"].([]any); ok {
		left := []any{}
		for _, one := range resources {
			if uri := one.(map[string]any)["uri"].(string); strings.HasPrefix(uri, "ui:") {
				found[uri] = one
			} else {
				left = append(left, one)
			}
		}
		result["resources"] = left
	}
	if contents, ok := result["contents"].([]any); ok {
		one := contents[0].(map[string]any)
		one["text"] = strings.SplitN(one["text"].(string), "\n", 2)[0]
		found["contents"] = one
	}
	rest, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return found, rest
}

func takeOut(from, into map[string]any, prefix string) {
	for key, value := range from {
		if strings.HasPrefix(key, prefix) {
			into[key] = value
			delete(from, key)
		}
	}
}

// TestBlockedOutputIsNotShown: what a hook withholds does not reach the client as a
// diff either.
func TestBlockedOutputIsNotShown(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"trusted/g/SKILL.md": "---\nname: g\ndescription: d\nhooks:\n  PostToolUse:\n    - matcher: \"*\"\n      hooks: [{type: permission, decision: deny, reason: secret}]\n---\n",
	})
	s := newServer(t, Config{Workspace: dir, Tools: []string{"perstack", "skills"}, Skills: []string{filepath.Join(dir, "trusted")}})
	l := dialServer(t, s)
	l.Send(strings.Replace(servertest.Greeting("1", "2025-11-25"), `{"elicitation":{}}`, showsViews, 1))
	l.Next()
	write := servertest.ToolCall("2", "writeTextFile", `{"path":"f","text":"private"}`)
	l.Send(write)
	if got := l.Next(); !strings.Contains(got, "perstack-base/diff") {
		t.Fatal("without a hook there must be a diff: ", got)
	}
	l.Send(servertest.ToolCall("3", "skill_load", `{"skill":"g"}`))
	l.Next()
	l.Send(strings.Replace(write, "private", "other", 1))
	if got := l.Next(); !strings.Contains(got, "blocked by hook") || strings.Contains(got, "perstack-base/diff") {
		t.Error(got)
	}
	l.End()
}
