package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/tools"
)

// ask sends one request through the interceptor, as every transport does.
func ask(t testing.TB, s *Server, method string, params any) (map[string]any, *rpcError) {
	t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	session, end := s.newSession("test")
	defer end()
	result, fault, handled := s.intercept(tools.WithSession(t.Context(), session), &request{method: method, params: raw})
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

func TestSkillsExtension(t *testing.T) {
	dir := workspace(t)
	put(t, dir, map[string]string{
		"skills/one/SKILL.md": skillText("one"), "skills/one/a b/ü.txt": "\ufeffx\r\n", "skills/one/bin": "\xff\xfe", "skills/one/empty/.git/x": "",
		"skills/one/inner/SKILL.md": skillText("inner"), "skills/two/SKILL.md": skillText("two"),
		"skills/odd/SKILL.md": "---\nname: Odd Name\ndescription: Not for strict hosts.\n---\n", "secret.txt": "secret",
	})
	if err := os.Symlink(filepath.Join(dir, "secret.txt"), filepath.Join(dir, "skills/one/link.txt")); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, Config{Workspace: dir})
	list := mustAsk(t, s, "skills/list", nil)
	if list["resultType"] != "complete" || list["ttlMs"] != 10000.0 || list["cacheScope"] != "private" || list["nextCursor"] != nil {
		t.Errorf("hints: %v", list)
	}
	var uris []string
	for _, e := range list["skills"].([]any) {
		entry := e.(map[string]any)
		uri := entry["uri"].(string)
		uris = append(uris, uri)
		if got := mustAsk(t, s, "skills/get", map[string]string{"uri": uri})["skill"]; fmt.Sprint(got) != fmt.Sprint(e) {
			t.Errorf("skills/get differs from skills/list: %v, %v", got, e)
		}
		if own := fmt.Sprint(entry["frontmatter"].(map[string]any)["x-own"]); own != "[1 yes]" {
			t.Errorf("front matter: %s", own)
		}
		for _, r := range entry["resources"].([]any) {
			checkServed(t, s, r.(map[string]any))
		}
	}
	if got := strings.Join(uris, " "); got != "skill://one/SKILL.md skill://one/inner/SKILL.md skill://two/SKILL.md" {
		t.Errorf("published are %s", got)
	}
	if raw, err := json.Marshal(list); err != nil || strings.Contains(string(raw), "link.txt") {
		t.Errorf("a link that leads out is listed: %s", raw)
	}
	for uri, names := range map[string]string{
		"skill://one":       "SKILL.md:text/markdown a b:inode/directory bin:text/plain empty:inode/directory inner:inode/directory",
		"skill://one/a%20b": "ü.txt:text/plain",
		"skill://one/a b":   "ü.txt:text/plain",
		"skill://one/empty": "",
		"skill://two":       "SKILL.md:text/markdown",
		"skill://one/inner": "SKILL.md:text/markdown",
	} {
		var got []string
		object := mustAsk(t, s, "resources/directory/read", map[string]string{"uri": uri})
		for _, c := range object["resources"].([]any) {
			child := c.(map[string]any)
			got = append(got, fmt.Sprintf("%v:%v", child["name"], child["mimeType"]))
		}
		if strings.Join(got, " ") != names || object["ttlMs"] != nil || object["resultType"] != "complete" {
			t.Errorf("%s: %v", uri, object)
		}
	}
	for _, c := range []struct{ method, uri string }{
		{"skills/get", "skill://one"}, {"skills/get", "skill://one/bin"}, {"skills/get", ""}, {"skills/get", "skill://Odd Name/SKILL.md"},
		{"resources/directory/read", "skill://one/bin"}, {"resources/directory/read", "skill://one/"}, {"resources/directory/read", "skill://"},
		{"resources/directory/read", "skill://one/empty/.git"}, {"resources/read", "skill://one"}, {"resources/read", "skill://one/link.txt"},
		{"resources/read", "skill://one/../two/SKILL.md"}, {"resources/read", "skill://one/%2e%2e/%2e%2e/secret.txt"}, {"resources/read", "skill://one//bin"},
		{"resources/read", "artifact://none"}, {"resources/read", "artifact://../x@0"}, {"resources/read", "file:///etc/passwd"},
	} {
		if object, fault := ask(t, s, c.method, map[string]string{"uri": c.uri}); fault == nil || fault.Code != mcp.INVALID_PARAMS || len(fault.Message) < 10 {
			t.Errorf("%s %s: %v %v", c.method, c.uri, object, fault)
		}
	}
	for _, method := range []string{"skills/list", "resources/list", "resources/directory/read"} {
		if _, fault := ask(t, s, method, map[string]string{"uri": "skill://one", "cursor": "x"}); fault == nil || fault.Code != mcp.INVALID_PARAMS {
			t.Errorf("%s takes a bad cursor: %v", method, fault)
		}
	}
}

// checkServed reads a resource and compares it with what the manifest promised.
func checkServed(t *testing.T, s *Server, r map[string]any) {
	t.Helper()
	contents := mustAsk(t, s, "resources/read", map[string]any{"uri": r["uri"]})["contents"].([]any)[0].(map[string]any)
	content, isText := contents["text"].(string)
	if !isText {
		raw, err := base64.StdEncoding.DecodeString(contents["blob"].(string))
		if err != nil {
			t.Fatal(err)
		}
		content = string(raw)
	}
	if digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))); digest != r["digest"] || float64(len(content)) != r["size"] {
		t.Errorf("%v is served as %q", r, content)
	}
}

func TestSkillPages(t *testing.T) {
	dir := workspace(t)
	for i := range 120 {
		name := fmt.Sprintf("s%03d", i)
		put(t, dir, map[string]string{"skills/" + name + "/SKILL.md": skillText(name)})
	}
	s := newServer(t, Config{Workspace: dir})
	for method, member := range map[string]string{"skills/list": "skills", "resources/list": "resources"} {
		seen, pages, cursor := map[string]bool{}, 0, any(nil)
		for {
			object := mustAsk(t, s, method, map[string]any{"cursor": cursor})
			for _, e := range object[member].([]any) {
				seen[e.(map[string]any)["uri"].(string)] = true
			}
			pages++
			if cursor = object["nextCursor"]; cursor == nil || pages > 10 {
				break
			}
		}
		if len(seen) != 120 || (method == "skills/list") != (pages == 3) {
			t.Errorf("%s: %d skills on %d pages", method, len(seen), pages)
		}
	}
	c, err := completer{s}.CompleteResourceArgument(t.Context(), skillTemplate, mcp.CompleteArgument{Name: "path", Value: "s0"}, mcp.CompleteContext{})
	if err != nil || len(c.Values) != 100 || c.Total != 100 || c.Values[0] != "s000/SKILL.md" {
		t.Errorf("completion: %+v %v", c, err)
	}
	if c, _ = (completer{s}).CompleteResourceArgument(t.Context(), skillTemplate, mcp.CompleteArgument{Name: "else"}, mcp.CompleteContext{}); len(c.Values) != 0 {
		t.Errorf("completion of nothing: %+v", c)
	}
}

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
	c, err := completer{s}.CompleteResourceArgument(t.Context(), artifactTemplate, mcp.CompleteArgument{Name: "name", Value: "kept/"}, mcp.CompleteContext{})
	if err != nil || fmt.Sprint(c.Values) != "[kept/out/ä.txt]" {
		t.Errorf("completion: %+v %v", c, err)
	}
}

// TestSkillsComeAndGo holds what clients are shown while skills change on disk.
func TestSkillsComeAndGo(t *testing.T) {
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
	l.send(greeting("1", "2025-11-25"))
	if got := l.next(); strings.Contains(got, "skill_load") {
		t.Error("instructions name a tool that is not there:", got)
	}
	put(t, dir, map[string]string{"skills/new/SKILL.md": skillText("new")})
	changes(t, l)
	if got := listed(); !strings.Contains(got, "skill_list_docs skill_load skill_run skill_select_docs") {
		t.Errorf("with a skill the default lists %s", got)
	}
	if tool := s.mcp.GetTool("skill_load").Tool; !strings.Contains(tool.Description, "- new: The skill new.") || !strings.Contains(string(tool.RawInputSchema), `"enum":["new"]`) {
		t.Errorf("skill_load: %s %s", tool.Description, tool.RawInputSchema)
	}
	if text := s.instructions(Config{}); !strings.Contains(text, "call the `skill_load` tool") || !strings.HasSuffix(text, "\n- new: The skill new.") {
		t.Error(text)
	}
	l.send(`{"jsonrpc":"2.0","id":5,"method":"prompts/get","params":{"name":"new","arguments":{"arguments":"x"}}}`)
	if got := l.next(); !strings.Contains(got, `skill_content name=\"new\"`) {
		t.Error("prompt:", got)
	}
	l.send(`{"jsonrpc":"2.0","id":6,"method":"prompts/get","params":{"name":"old"}}`)
	if got := l.next(); !strings.Contains(got, "-32602") {
		t.Error("unknown prompt:", got)
	}
	s.look(t.Context()) // so that the disk was looked at a moment ago
	put(t, dir, map[string]string{"skills/newest/SKILL.md": skillText("newest")})
	l.send(`{"jsonrpc":"2.0","id":8,"method":"prompts/get","params":{"name":"newest"}}`)
	for got := l.next(); ; got = l.next() {
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
	l.send(toolCall("7", "skill_load", `{"skill":"new"}`))
	if got := l.next(); !strings.Contains(got, "It exists as skills.skill_load but is not selected") {
		t.Error(got)
	}
}

// changes waits for the three notifications of a change, in any order and number.
func changes(t *testing.T, l *line) {
	t.Helper()
	want := map[string]bool{"tools": true, "prompts": true, "resources": true}
	for deadline := time.Now().Add(hang); len(want) > 0 && time.Now().Before(deadline); {
		note := l.next()
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
	session, end := s.newSession("test")
	defer end()
	ctx := tools.WithSession(t.Context(), session)
	read := func() string {
		var req mcp.CallToolRequest
		req.Params.Arguments = map[string]any{"skill_name": "s", "path": "x.txt"}
		r, err := s.mcp.GetTool("read_skill_resource").Handler(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		return texts(r)
	}
	if got := read(); !strings.Contains(got, "has not been activated") {
		t.Error(got)
	}
	if _, err := s.prompt(s.repo.List()[0]).Handler(ctx, mcp.GetPromptRequest{}); err != nil {
		t.Fatal(err)
	}
	if got := read(); !strings.Contains(got, "text") {
		t.Error(got)
	}
	single, endCall := s.newCall("call")
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
	d := sandbox.NewWorkdirs(dir)
	w, err := d.New("session-x")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if strings.HasPrefix(w.Root(), dir+"/") {
		t.Errorf("the run workspace is %s", w.Root())
	}
}
