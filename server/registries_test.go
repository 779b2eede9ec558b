package server

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

// What registries and clients are given; the lists of tools in them are those of the default selection.
const (
	bundleManifest = "../mcpb/manifest.json"
	dockerTools    = "../deploy/docker-mcp/tools.json"
)

// A manifest is mcpb/manifest.json: what a test fills in by type, the rest as it stands.
type manifest struct {
	ManifestVersion  string          `json:"manifest_version"`
	Name             string          `json:"name"`
	DisplayName      string          `json:"display_name"`
	Version          string          `json:"version"`
	Description      string          `json:"description"`
	LongDescription  string          `json:"long_description"`
	Author           json.RawMessage `json:"author"`
	Repository       json.RawMessage `json:"repository"`
	Homepage         string          `json:"homepage"`
	Documentation    string          `json:"documentation"`
	Support          string          `json:"support"`
	Server           json.RawMessage `json:"server"`
	Tools            []manifestTool  `json:"tools"`
	ToolsGenerated   bool            `json:"tools_generated"`
	PromptsGenerated bool            `json:"prompts_generated"`
	Keywords         []string        `json:"keywords"`
	License          string          `json:"license"`
	Compatibility    json.RawMessage `json:"compatibility"`
	UserConfig       json.RawMessage `json:"user_config"`
}

type manifestTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// TestBundleListsTheTools: people see the tools of the bundle before they install it.
func TestBundleListsTheTools(t *testing.T) {
	text, err := os.ReadFile(bundleManifest)
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	m.Tools = nil
	for _, l := range newServer(t, Config{Workspace: t.TempDir(), NoDiscover: true}).Listed() {
		m.Tools = append(m.Tools, manifestTool{l.Tool.Name, Summary(l.Tool)})
	}
	golden(t, bundleManifest, indented(t, m))
}

// A dockerTool is an entry of tools.json, from which Docker's registry lists the tools without starting the server.
type dockerTool struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Arguments   []dockerArgument `json:"arguments"`
}

type dockerArgument struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Desc string `json:"desc"`
}

func TestDockerRegistryListsTheTools(t *testing.T) {
	var all []dockerTool
	for _, l := range newServer(t, Config{Workspace: t.TempDir(), NoDiscover: true}).Listed() {
		tool := dockerTool{l.Tool.Name, l.Tool.Description, []dockerArgument{}}
		for _, a := range Arguments(l.Tool) {
			tool.Arguments = append(tool.Arguments, dockerArgument{a.Name, a.Type, a.Description})
		}
		all = append(all, tool)
	}
	golden(t, dockerTools, indented(t, all))
}

// TestInstallLinks: the links of README for one click have the configuration that the table beside them shows.
func TestInstallLinks(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- links:begin -->\n", "<!-- links:end -->"
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md has lost the markers %s and %s", strings.TrimSpace(begin), end)
	}
	cursor := connectConfig(t, text, "Cursor", "mcpServers")
	code := connectConfig(t, text, "VS Code", "servers")
	links := "[Add to Cursor](https://cursor.com/en/install-mcp?" + linkQuery(base64.StdEncoding.EncodeToString(cursor)) + ") ·\n" +
		"[Add to VS Code](https://vscode.dev/redirect/mcp/install?" + linkQuery(string(code)) + ")\n"
	golden(t, readme, []byte(head+begin+links+end+tail))
}

// linkQuery is the query of a link, in which a blank is %20 for whoever takes + as it stands.
func linkQuery(config string) string {
	return "name=" + Name + "&config=" + strings.ReplaceAll(url.QueryEscape(config), "+", "%20")
}

// connectConfig is the server's own part of the JSON that README's table has for a client.
func connectConfig(t *testing.T, readme []byte, client, key string) json.RawMessage {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| " + regexp.QuoteMeta(client) + " \\| `[^`]+` \\| `(\\{.*\\})` \\|$").FindSubmatch(readme)
	if row == nil {
		t.Fatalf("README.md has no row with JSON for %s", client)
	}
	var file map[string]map[string]json.RawMessage
	if err := json.Unmarshal(row[1], &file); err != nil {
		t.Fatalf("%s: %v", client, err)
	}
	if file[key][Name] == nil {
		t.Fatalf("%s: %s has no %s.%s", client, row[1], key, Name)
	}
	var compact strings.Builder
	enc := json.NewEncoder(&compact)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(file[key][Name]); err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(strings.TrimSpace(compact.String()))
}
