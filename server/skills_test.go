package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/server/internal/servertest"
	"github.com/perstack-ai/perstack-base/tools"
)

// ask sends one request through the interceptor, as every transport does.
func ask(t testing.TB, s *Server, method string, params any) (map[string]any, *jsonrpc.Error) {
	t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	session, end := s.sessions.Open("test")
	defer end()
	result, fault, handled := s.dispatcher.Methods.Answer(tools.WithSession(t.Context(), session), &dispatch.Request{Method: method, Params: raw})
	if !handled {
		t.Fatalf("%s is not answered", method)
	}
	if fault != nil {
		return nil, fault
	}
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object, nil
}

func mustAsk(t testing.TB, s *Server, method string, params any) map[string]any {
	t.Helper()
	object, fault := ask(t, s, method, params)
	if fault != nil {
		t.Fatalf("%s %v: %s", method, params, fault.Message)
	}
	return object
}

const bare = "---\nname: %s\ndescription: The skill %s.\nx-own: [1, yes]\n---\nBody.\n"

func skillText(name string) string { return fmt.Sprintf(bare, name, name) }

// TestArtifactsAreResources saves a file twice and reads both versions.
func TestArtifactsAreResources(t *testing.T) {
	dir := workspace(t)
	put(t, dir, map[string]string{"skills/s/SKILL.md": skillText("s")})
	s := newServer(t, Config{Workspace: dir, Tools: []string{"skills"}})
	call := inProcess(t, s)
	for _, text := range []string{"one", "two"} {
		r := mustCall(t, call, "skill_run", `{"skill":"s","command":"printf `+text+` > out/ä.txt","outputs":{"globs":["out/*"],"save":true,"name_template":"kept/"}}`)
		if r.IsError || !strings.Contains(texts(r), `"name":"kept/out/ä.txt"`) {
			t.Fatal(texts(r))
		}
	}
	for uri, want := range map[string]string{
		"artifact://kept/out/ä.txt@0": "one", "artifact://kept/out/%C3%A4.txt@1": "two", "artifact://kept/out/ä.txt": "two",
	} {
		contents := mustAsk(t, s, "resources/read", map[string]string{"uri": uri})["contents"].([]any)[0].(map[string]any)
		if contents["text"] != want || contents["mimeType"] != "text/plain" {
			t.Errorf("%s: %v", uri, contents)
		}
	}
	c, err := s.lists.skills.CompleteResourceArgument(t.Context(), "artifact://{+name}", mcp.CompleteArgument{Name: "name", Value: "kept/"}, mcp.CompleteContext{})
	if err != nil || fmt.Sprint(c.Values) != "[kept/out/ä.txt]" {
		t.Errorf("completion: %+v %v", c, err)
	}
}

// TestSkillsComeAndGo holds what clients are shown while skills change on disk.
func TestSkillsComeAndGo(t *testing.T) {
	testlevel.NotQuick(t, "waits for the watch to look")
	dir := workspace(t)
	s := newServer(t, Config{Workspace: dir})
	listed := func() string {
		var names []string
		for _, l := range s.Listed() {
			names = append(names, l.Tool.Name)
		}
		return strings.Join(names, " ")
	}
	if got := listed(); strings.Contains(got, "skill") {
		t.Errorf("without a skill the default lists %s", got)
	}
	l := dialServer(t, s)
	l.Send(servertest.Greeting("1", "2025-11-25"))
	if got := l.Next(); strings.Contains(got, "skill_load") {
		t.Error("instructions name a tool that is not there:", got)
	}
	put(t, dir, map[string]string{"skills/new/SKILL.md": skillText("new")})
	changes(t, l)
	if got := listed(); !strings.Contains(got, "skill_list_docs skill_load skill_run skill_select_docs") {
		t.Errorf("with a skill the default lists %s", got)
	}
	if tool := s.lists.Tool("skill_load"); !strings.Contains(tool.Description, "- new: The skill new.") || !strings.Contains(string(tool.RawInputSchema), `"enum":["new"]`) {
		t.Errorf("skill_load: %s %s", tool.Description, tool.RawInputSchema)
	}
	if text := s.instructions(Config{}); !strings.Contains(text, "call the `skill_load` tool") || !strings.HasSuffix(text, "\n- new: The skill new.") {
		t.Error(text)
	}
	l.Send(`{"jsonrpc":"2.0","id":5,"method":"prompts/get","params":{"name":"new","arguments":{"arguments":"x"}}}`)
	if got := l.Next(); !strings.Contains(got, `skill_content name=\"new\"`) {
		t.Error("prompt:", got)
	}
	l.Send(`{"jsonrpc":"2.0","id":6,"method":"prompts/get","params":{"name":"old"}}`)
	if got := l.Next(); !strings.Contains(got, "-32602") {
		t.Error("unknown prompt:", got)
	}
	s.lists.refresh(t.Context()) // so that the disk was looked at a moment ago
	put(t, dir, map[string]string{"skills/newest/SKILL.md": skillText("newest")})
	l.Send(`{"jsonrpc":"2.0","id":8,"method":"prompts/get","params":{"name":"newest"}}`)
	for got := l.Next(); ; got = l.Next() {
		if strings.Contains(got, "list_changed") {
			continue
		}
		if !strings.Contains(got, `skill_content name=\"newest\"`) {
			t.Error("prompt of a skill that was just put there:", got)
		}
		break
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "skills/newest")), os.RemoveAll(filepath.Join(dir, "skills/new"))); err != nil {
		t.Fatal(err)
	}
	changes(t, l)
	if got := listed(); strings.Contains(got, "skill") {
		t.Errorf("after the last skill the default lists %s", got)
	}
	l.Send(servertest.ToolCall("7", "skill_load", `{"skill":"new"}`))
	if got := l.Next(); !strings.Contains(got, "It exists as skills.skill_load but is not selected") {
		t.Error(got)
	}
}

// changes waits for the three notifications of a change, in any order and number.
func changes(t *testing.T, l *servertest.Line) {
	t.Helper()
	want := map[string]bool{"tools": true, "prompts": true, "resources": true}
	for deadline := time.Now().Add(servertest.Hang); len(want) > 0 && time.Now().Before(deadline); {
		note := l.Next()
		for name := range want {
			if strings.Contains(note, "notifications/"+name+"/list_changed") {
				delete(want, name)
			}
		}
	}
	if len(want) > 0 {
		t.Fatalf("not told of %v", want)
	}
}

// TestPromptOpensTheGate: what a prompt sent can be followed.
func TestPromptOpensTheGate(t *testing.T) {
	dir := workspace(t)
	put(t, dir, map[string]string{"skills/s/SKILL.md": skillText("s"), "skills/s/x.txt": "text"})
	s := newServer(t, Config{Workspace: dir, Tools: []string{"echo"}})
	session, end := s.sessions.Open("test")
	defer end()
	ctx := tools.WithSession(t.Context(), session)
	read := func() string {
		var req mcp.CallToolRequest
		req.Params.Arguments = map[string]any{"skill_name": "s", "path": "x.txt"}
		r, err := s.lists.Handler("read_skill_resource")(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		return texts(r)
	}
	if got := read(); !strings.Contains(got, "has not been activated") {
		t.Error(got)
	}
	if _, err := s.mcp.ListPrompts()["s"].Handler(ctx, mcp.GetPromptRequest{}); err != nil {
		t.Fatal(err)
	}
	if got := read(); !strings.Contains(got, "text") {
		t.Error(got)
	}
	single, endCall := s.sessions.OpenCall()
	defer endCall()
	ctx = tools.WithSession(t.Context(), single)
	if got := read(); !strings.Contains(got, "text") {
		t.Error("a single call has an open gate:", got)
	}
}

// TestNothingInside: the run workspace never lies in the workspace.
func TestNothingInside(t *testing.T) {
	dir := workspace(t)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("HOME", dir)
	d := scratch.NewWorkdirs(dir)
	w, err := d.New("session-x")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if strings.HasPrefix(w.Root(), dir+"/") {
		t.Errorf("the run workspace is %s", w.Root())
	}
}
