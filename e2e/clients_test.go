package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nodeScript runs one script of e2e/clients with Node 22 and fails on anything
// but the given number of ok lines.
func nodeScript(t *testing.T, checks int, script string, args ...string) {
	t.Helper()
	dir := nodeDir(t)
	path, err := filepath.Abs(filepath.Join(dir, script))
	if err != nil {
		t.Fatal(err)
	}
	cmd := node(dir, append([]string{path}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	if got := strings.Count("\n"+string(out), "\nok "); got != checks {
		t.Errorf("%s passed %d of %d checks:\n%s", script, got, checks, out)
	}
}

// TestTypeScriptSDK drives all nine tools with the client library that most MCP
// hosts are built on.
func TestTypeScriptSDK(t *testing.T) {
	nodeScript(t, 12, "sdk_v1.mjs", binary, workspace(t))
}

// journeySteps is how many checks e2e/clients/journey.mjs makes.
const journeySteps = 7

// TestTypeScriptClients makes the same journey with both generations of the
// official client, over every transport, in every way to agree on an era.
func TestTypeScriptClients(t *testing.T) {
	nodeDir(t)
	for _, c := range []struct {
		script, kind string
		eras         []string
	}{
		{"web_v1.mjs", "http", []string{""}},
		{"web_v1.mjs", "sse", []string{""}},
		{"client_v2.mjs", "stdio", []string{"auto", "2026-07-28", "legacy"}},
		{"client_v2.mjs", "http", []string{"auto", "2026-07-28", "legacy"}},
		{"client_v2.mjs", "sse", []string{"auto"}},
	} {
		for _, era := range c.eras {
			t.Run(strings.Join([]string{c.script, c.kind, era}, " "), func(t *testing.T) {
				t.Parallel()
				dir, target := workspace(t), binary
				if c.kind != "stdio" {
					target = startSite(t, dir, c.kind).url
				}
				nodeScript(t, journeySteps, c.script, c.kind, target, dir, era)
			})
		}
	}
}

// TestTypeScriptTasks lets the official library for tasks have some.
func TestTypeScriptTasks(t *testing.T) {
	nodeDir(t)
	nodeScript(t, 4, "tasks_v2.mjs", startSite(t, workspace(t), "http", "--task-after", "0").url)
}

// TestInspector holds what is listed against the Inspector's idea of what works
// with every client, for every connection and era.
func TestInspector(t *testing.T) {
	dir := nodeDir(t)
	for _, c := range []struct {
		transport, tools string
		eras             []string
	}{
		{"stdio", "perstack", []string{"modern", "legacy"}},
		{"http", "perstack", []string{"modern", "legacy"}},
		{"sse", "perstack", []string{"legacy"}},
		{"stdio", "baseagent", []string{"modern", "legacy"}},
		{"stdio", "vski,perstack.readTextFile", []string{"modern", "legacy"}},
	} {
		for _, era := range c.eras {
			t.Run(c.transport+" "+c.tools+" "+era, func(t *testing.T) {
				t.Parallel()
				work := workspace(t)
				if err := os.WriteFile(filepath.Join(work, "a"), []byte("text\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				server := map[string]any{"command": binary, "args": []string{"serve", "--tools", c.tools, "--workspace", work}, "protocolEra": era}
				if c.transport != "stdio" {
					kind := map[string]string{"http": "streamable-http", "sse": "sse"}[c.transport]
					server = map[string]any{"type": kind, "url": startSite(t, work, c.transport).url, "protocolEra": era}
				}
				config, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"it": server}})
				path := filepath.Join(t.TempDir(), "servers.json")
				if err := os.WriteFile(path, config, 0o600); err != nil {
					t.Fatal(err)
				}
				reader, input := "readTextFile", `{"path":"a"}`
				if c.tools == "baseagent" {
					reader, input = "read_file", `{"file_path":"a"}`
				}
				for _, args := range [][]string{
					{"--method", "tools/list", "--strict", "-q"},
					{"--method", "tools/call", "--tool-name", reader, "--tool-args-json", input},
				} {
					inspector := filepath.Join(dir, "node_modules/.bin/mcp-inspector")
					cmd := node(dir, append([]string{inspector, "--cli", "--config", path, "--server", "it", "--format", "json"}, args...)...)
					if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "text") {
						t.Errorf("%v: %v\n%s", args, err, out)
					}
				}
			})
		}
	}
}
