package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/skills"
)

// update writes what the code says into schemas, README and transcripts instead
// of comparing.
var update = flag.Bool("update", false, "write golden files instead of comparing")

const (
	schemaDir     = "../testdata/schemas"
	transcriptDir = "../testdata/transcripts"
	readme        = "../README.md"
)

// listAll returns the entries of every profile, each listed by a server of its own.
func listAll(t *testing.T) map[*tools.Profile][]Listed {
	t.Helper()
	all := map[*tools.Profile][]Listed{}
	for _, p := range Profiles {
		s := newServer(t, Config{Workspace: t.TempDir(), Tools: []string{p.Name}})
		all[p] = s.Listed()
	}
	return all
}

func newServer(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestSchemasAreWhatTheCodeSays(t *testing.T) {
	wanted := map[string]bool{}
	for p, listed := range listAll(t) {
		for _, l := range listed {
			path := filepath.Join(schemaDir, p.Name, l.Tool.Name+".json")
			wanted[path] = true
			golden(t, path, indented(t, l.Tool))
		}
	}
	orphans(t, filepath.Join(schemaDir, "*", "*.json"), wanted)
}

func TestEveryToolHasATranscript(t *testing.T) {
	wanted := map[string]bool{}
	for p, listed := range listAll(t) {
		for _, l := range listed {
			path := filepath.Join(transcriptDir, p.Name, l.Tool.Name+".txtar")
			wanted[path] = true
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s.%s has no transcript: %v", p.Name, l.Tool.Name, err)
			}
		}
	}
	orphans(t, filepath.Join(transcriptDir, "*", "*.txtar"), wanted)
}

// TestReadmeTables compares the tables between the markers of each profile:
// <!-- tools:begin PROFILE --> and <!-- tools:end PROFILE -->.
func TestReadmeTables(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for p, listed := range listAll(t) {
		begin, end := "<!-- tools:begin "+p.Name+" -->\n", "<!-- tools:end "+p.Name+" -->"
		head, rest, ok := strings.Cut(want, begin)
		_, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("README.md has lost the markers %s … %s", strings.TrimSpace(begin), end)
		}
		want = head + begin + Markdown(listed) + end + tail
	}
	golden(t, readme, []byte(want))
}

func golden(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is stale (%v): run go test ./server -update and read the difference", path, err)
	}
}

func orphans(t *testing.T, glob string, wanted map[string]bool) {
	t.Helper()
	paths, err := filepath.Glob(glob)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s matches nothing (%v)", glob, err)
	}
	for _, path := range paths {
		if !wanted[path] {
			t.Errorf("%s belongs to no tool", path)
		}
	}
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPolicies holds for every tool of every profile.
func TestPolicies(t *testing.T) {
	for p, listed := range listAll(t) {
		names := map[string]bool{}
		for _, l := range listed {
			name := p.Name + "." + l.Tool.Name
			if names[l.Tool.Name] {
				t.Errorf("%s is listed twice", name)
			}
			names[l.Tool.Name] = true
			a := l.Tool.Annotations
			if a.ReadOnlyHint == nil || a.DestructiveHint == nil || a.IdempotentHint == nil || a.OpenWorldHint == nil {
				t.Errorf("%s: all four hints must be deliberate", name)
			} else if *a.ReadOnlyHint && *a.DestructiveHint {
				t.Errorf("%s: read-only and destructive at once", name)
			}
			for kind, raw := range map[string]json.RawMessage{"input": l.Tool.RawInputSchema, "output": l.Tool.RawOutputSchema} {
				if raw != nil {
					checkSchema(t, name+" "+kind, raw)
				}
			}
		}
		if !slices.IsSortedFunc(listed, func(a, b Listed) int { return strings.Compare(a.Tool.Name, b.Tool.Name) }) {
			t.Errorf("%s: tools are not listed by name", p.Name)
		}
	}
}

func checkSchema(t *testing.T, name string, raw json.RawMessage) {
	t.Helper()
	var schema struct {
		Type                 string
		Properties           map[string]map[string]any
		AdditionalProperties *bool
	}
	if err := json.Unmarshal(raw, &schema); err != nil || schema.Type != "object" || schema.Properties == nil {
		t.Errorf("%s: not an object schema with properties: %s (%v)", name, raw, err)
	}
	if schema.AdditionalProperties == nil || *schema.AdditionalProperties {
		t.Errorf("%s: must be closed", name)
	}
	for property, p := range schema.Properties {
		if text, _ := p["description"].(string); len(text) < 10 {
			t.Errorf("%s: property %s is not described", name, property)
		}
	}
	for _, word := range []string{`"anyOf"`, `"oneOf"`, `"allOf"`, `"$ref"`} {
		if bytes.Contains(raw, []byte(word)) {
			t.Errorf("%s: %s does not work in every client", name, word)
		}
	}
}

// maxDefaultList bounds the default tools/list: a client pays for it in every conversation.
const maxDefaultList = 12 << 10

func TestDefaultListIsSmall(t *testing.T) {
	s := newServer(t, Config{Workspace: t.TempDir()})
	var entries []any
	for _, l := range s.Listed() {
		entries = append(entries, l.Tool)
	}
	raw, err := json.Marshal(map[string]any{"tools": entries})
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > maxDefaultList {
		t.Errorf("the default tools/list has %d bytes, more than %d", len(raw), maxDefaultList)
	}
}

// TestConnectLine: what README tells a Perstack runtime to start lists the nine tools
// of its API, whatever skills exist: its lockfile must not depend on the machine.
func TestConnectLine(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("`perstackBaseSkillCommand = (\\[.*\\])`").FindSubmatch(text)
	var line []string
	if m == nil || json.Unmarshal(m[1], &line) != nil || len(line) != 4 || line[2] != "--tools" {
		t.Fatalf("README.md has no line for Perstack: %s", m)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "skills"), os.DirFS("../testdata/skills")); err != nil {
		t.Fatal(err)
	}
	for list, want := range map[string]int{line[3]: 9, "": 9 + len(skills.Profile.Tools)} {
		s := newServer(t, Config{Workspace: dir, Tools: []string{list}})
		if got := len(s.Listed()); got != want {
			t.Errorf("--tools %s lists %d tools beside skills, not %d", list, got, want)
		}
	}
}
