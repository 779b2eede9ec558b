package skillsapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools"
)

// open serves the skills below dir/skills.
func open(t *testing.T, dir string) *API {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	files, err := files.Open(dir, sandbox.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	roots := []skillrepo.Root{{FS: files.Tree(), Path: "skills", Dir: dir + "/skills"}}
	repo, err := skillrepo.Open(t.Context(), roots, skillrepo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	engine := &tools.Skills{Repo: repo, Files: files, Workdirs: scratch.NewWorkdirs(dir), Log: slog.New(slog.DiscardHandler)}
	return &API{Repo: repo, Engine: engine, MCP: mcpserver.NewMCPServer("test", "1"), PageSize: 200}
}

// put writes files below dir.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// ask sends one request.
func ask(t *testing.T, a *API, method string, params any) (map[string]any, *jsonrpc.Error) {
	t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	result, fault, handled := a.Answer(t.Context(), &dispatch.Request{Method: method, Params: raw})
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

func mustAsk(t *testing.T, a *API, method string, params any) map[string]any {
	t.Helper()
	object, fault := ask(t, a, method, params)
	if fault != nil {
		t.Fatalf("%s %v: %s", method, params, fault.Message)
	}
	return object
}

const bare = "---\nname: %s\ndescription: The skill %s.\nx-own: [1, yes]\n---\nBody.\n"

func skillText(name string) string { return fmt.Sprintf(bare, name, name) }

func TestSkillsExtension(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"skills/one/SKILL.md": skillText("one"), "skills/one/a b/ü.txt": "\ufeffx\r\n", "skills/one/bin": "\xff\xfe", "skills/one/empty/.git/x": "",
		"skills/one/inner/SKILL.md": skillText("inner"), "skills/two/SKILL.md": skillText("two"),
		"skills/odd/SKILL.md": "---\nname: Odd Name\ndescription: Not for strict hosts.\n---\n", "secret.txt": "secret",
	})
	if err := os.Symlink(filepath.Join(dir, "secret.txt"), filepath.Join(dir, "skills/one/link.txt")); err != nil {
		t.Fatal(err)
	}
	a := open(t, dir)
	list := mustAsk(t, a, "skills/list", nil)
	if list["resultType"] != "complete" || list["ttlMs"] != 10000.0 || list["cacheScope"] != "private" || list["nextCursor"] != nil {
		t.Errorf("hints: %v", list)
	}
	var uris []string
	for _, e := range list["skills"].([]any) {
		entry := e.(map[string]any)
		uri := entry["uri"].(string)
		uris = append(uris, uri)
		if got := mustAsk(t, a, "skills/get", map[string]string{"uri": uri})["skill"]; fmt.Sprint(got) != fmt.Sprint(e) {
			t.Errorf("skills/get differs from skills/list: %v, %v", got, e)
		}
		if own := fmt.Sprint(entry["frontmatter"].(map[string]any)["x-own"]); own != "[1 yes]" {
			t.Errorf("front matter: %s", own)
		}
		for _, r := range entry["resources"].([]any) {
			checkServed(t, a, r.(map[string]any))
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
		object := mustAsk(t, a, "resources/directory/read", map[string]string{"uri": uri})
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
		if object, fault := ask(t, a, c.method, map[string]string{"uri": c.uri}); fault == nil || fault.Code != mcp.INVALID_PARAMS || len(fault.Message) < 10 {
			t.Errorf("%s %s: %v %v", c.method, c.uri, object, fault)
		}
	}
	for _, method := range []string{"skills/list", "resources/list", "resources/directory/read"} {
		if _, fault := ask(t, a, method, map[string]string{"uri": "skill://one", "cursor": "x"}); fault == nil || fault.Code != mcp.INVALID_PARAMS {
			t.Errorf("%s takes a bad cursor: %v", method, fault)
		}
	}
}

// checkServed reads a resource and compares it with what the manifest promised.
func checkServed(t *testing.T, a *API, r map[string]any) {
	t.Helper()
	contents := mustAsk(t, a, "resources/read", map[string]any{"uri": r["uri"]})["contents"].([]any)[0].(map[string]any)
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
	dir := t.TempDir()
	for i := range 120 {
		name := fmt.Sprintf("s%03d", i)
		put(t, dir, map[string]string{"skills/" + name + "/SKILL.md": skillText(name)})
	}
	a := open(t, dir)
	for method, member := range map[string]string{"skills/list": "skills", "resources/list": "resources"} {
		seen, pages, cursor := map[string]bool{}, 0, any(nil)
		for {
			object := mustAsk(t, a, method, map[string]any{"cursor": cursor})
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
	c, err := a.CompleteResourceArgument(t.Context(), "skill://{+path}", mcp.CompleteArgument{Name: "path", Value: "s0"}, mcp.CompleteContext{})
	if err != nil || len(c.Values) != 100 || c.Total != 100 || c.Values[0] != "s000/SKILL.md" {
		t.Errorf("completion: %+v %v", c, err)
	}
	if c, _ = a.CompleteResourceArgument(t.Context(), "skill://{+path}", mcp.CompleteArgument{Name: "else"}, mcp.CompleteContext{}); len(c.Values) != 0 {
		t.Errorf("completion of nothing: %+v", c)
	}
}
