package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// snippetForms say how the JSON of each client is made: where the servers stand, and what keys one may have, by the
// client's documentation.
var snippetForms = map[string]struct {
	servers string
	keys    []string
}{
	"Claude Desktop": {"mcpServers", []string{"command", "args", "env"}},
	"Cursor":         {"mcpServers", []string{"type", "command", "args", "env", "envFile"}},
	"VS Code":        {"servers", []string{"type", "command", "args", "env", "envFile", "cwd", "sandboxEnabled", "sandbox", "dev"}},
	"Zed":            {"context_servers", []string{"command", "args", "env", "enabled", "settings", "source"}},
}

// A snippet is one row of README's table of clients.
type snippet struct{ client, text string }

func snippets(t *testing.T) (rows []snippet) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(readme), "\n## Connect\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\| ([^|]+) \\| [^|]+ \\| `([^`]+)`").FindAllStringSubmatch(section, -1) {
		rows = append(rows, snippet{m[1], m[2]})
	}
	if !ok || len(rows) < 6 {
		t.Fatalf("README.md shows only %q", rows)
	}
	return rows
}

// TestReadmeSnippets starts the server as the JSON of each client says, and lists its tools. Files of the form that
// Claude Desktop began are read by the Inspector's own parser, too.
func TestReadmeSnippets(t *testing.T) {
	tried := 0
	for _, s := range snippets(t) {
		form, ok := snippetForms[s.client]
		if !ok {
			if strings.HasPrefix(s.text, "{") {
				t.Errorf("nothing is known of the JSON of %s", s.client)
			}
			continue
		}
		tried++
		t.Run(s.client, func(t *testing.T) {
			work := workspace(t)
			text := strings.NewReplacer("${workspaceFolder}", work, "/path/to/project", work, `"perstack-base", "args"`, `"`+binary+`", "args"`).Replace(s.text)
			var file map[string]map[string]map[string]any
			if err := json.Unmarshal([]byte(text), &file); err != nil {
				t.Fatal(err)
			}
			server := file[form.servers]["perstack-base"]
			if server == nil || len(file) != 1 {
				t.Fatalf("%s has no %s.perstack-base", text, form.servers)
			}
			for key := range server {
				if !slices.Contains(form.keys, key) {
					t.Errorf("%s knows no %q", s.client, key)
				}
			}
			var args []string
			for _, a := range server["args"].([]any) {
				args = append(args, a.(string))
			}
			c := startCommand(t, exec.Command(server["command"].(string), args...))
			c.initialize()
			if list := c.request("tools/list", nil); !strings.Contains(string(list), "readTextFile") {
				t.Errorf("the server lists %s", list)
			}
			if form.servers == "mcpServers" {
				inspect(t, text)
			}
		})
	}
	if tried != len(snippetForms) {
		t.Errorf("README.md shows %d of %d clients", tried, len(snippetForms))
	}
}

// inspect has the Inspector read a configuration and list the tools of its server.
func inspect(t *testing.T, config string) {
	dir := os.Getenv("PERSTACK_BASE_E2E_NODE")
	if dir == "" {
		return
	}
	path := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := node(dir, filepath.Join(dir, "node_modules/.bin/mcp-inspector"), "--cli", "--config", path, "--server", "perstack-base", "--method", "tools/list", "--format", "json")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "readTextFile") {
		t.Errorf("the Inspector: %v\n%s", err, out)
	}
}

// TestClaudeCodeTakesItsLine runs README's line with Claude Code itself, which then starts the server to see whether
// it answers. The client is large, so this asks for it: PERSTACK_BASE_E2E_CLAUDE=/path/to/claude.
func TestClaudeCodeTakesItsLine(t *testing.T) {
	claude := os.Getenv("PERSTACK_BASE_E2E_CLAUDE")
	if claude == "" {
		t.Skip("needs Claude Code: npm i @anthropic-ai/claude-code && export PERSTACK_BASE_E2E_CLAUDE=$PWD/node_modules/.bin/claude")
	}
	var line string
	for _, s := range snippets(t) {
		if s.client == "Claude Code" {
			line = s.text
		}
	}
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != "claude" {
		t.Fatalf("README.md has %q for Claude Code", line)
	}
	home, work := t.TempDir(), workspace(t)
	for _, args := range [][]string{words[1:], {"mcp", "get", "perstack-base"}} {
		cmd := exec.Command(claude, args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "HOME="+home, "PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"), "DISABLE_AUTOUPDATER=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if args[1] == "get" && !strings.Contains(string(out), "Connected") {
			t.Errorf("Claude Code says\n%s", out)
		}
	}
}
