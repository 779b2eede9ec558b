package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// declaredSize is the length of answers that a tool lists, 0 for none.
func declaredSize(t *testing.T, tool mcp.Tool) int {
	t.Helper()
	raw, err := json.Marshal(tool)
	if err != nil {
		t.Fatal(err)
	}
	var entry struct {
		Meta map[string]int `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		t.Fatal(err)
	}
	return entry.Meta["anthropic/maxResultSizeChars"]
}

// TestLongAnswersAreDeclared: what a tool lists of the length of its answers follows
// the budget in force; a tool whose answers are never long lists nothing.
func TestLongAnswersAreDeclared(t *testing.T) {
	for _, c := range []struct {
		maxOutput int
		tool      string
		want      int
	}{
		{0, "perstack.exec", 131072}, {0, "perstack.readTextFile", 131072}, {0, "vski.read", 131072}, {0, "skills.skill_load", 131072},
		{0, "perstack.todo", 131072}, {0, "baseagent.read_file", 0}, {0, "perstack.readImageFile", 0}, {0, "baseagent.view_image", 0},
		{1000, "perstack.exec", 0}, {1000, "perstack.todo", 131072}, {50_000, "vski.exec", 0}, {50_001, "vski.exec", 50_001},
		{200_000, "perstack.readTextFile", 200_000}, {200_000, "baseagent.grep_files", 200_000}, {9_000_000, "baseagent.list_dir", 500_000},
	} {
		s := newServer(t, Config{Workspace: t.TempDir(), Tools: []string{c.tool}, MaxOutput: c.maxOutput})
		if got := declaredSize(t, s.Listed()[0].Tool); got != c.want {
			t.Errorf("--max-output %d: %s lists %d, not %d", c.maxOutput, c.tool, got, c.want)
		}
	}
}

// TestNoLongAnswerGoesUndeclared calls what reads and runs with more than fits.
func TestNoLongAnswerGoesUndeclared(t *testing.T) {
	dir := t.TempDir()
	long := bytes.Repeat([]byte(strings.Repeat("x", 99)+"\n"), 4000)
	if err := os.WriteFile(filepath.Join(dir, "long"), long, 0o644); err != nil {
		t.Fatal(err)
	}
	calls := map[string]map[string]any{
		"perstack.readTextFile":   {"path": "long"},
		"perstack.exec":           {"command": "cat", "args": []any{"long"}, "env": map[string]any{}, "cwd": "", "stdout": true, "stderr": true},
		"vski.read":               {"path": "long"},
		"vski.exec":               {"command": "cat long"},
		"baseagent.read_file":     {"file_path": "long"},
		"baseagent.shell_command": {"command": "cat long"},
		"baseagent.grep_files":    {"pattern": "x", "output_mode": "content", "limit": 4000.0},
	}
	for _, maxOutput := range []int{0, 100_000} {
		for name, args := range calls {
			s := newServer(t, Config{Workspace: dir, Tools: []string{name}, MaxOutput: maxOutput})
			tool := s.Listed()[0].Tool
			result, err := s.Call(t.Context(), tool.Name, args)
			if err != nil || result.IsError {
				t.Fatal(name, err, fmt.Sprint(result)[:200])
			}
			text := result.Content[0].(mcp.TextContent).Text
			if declared := declaredSize(t, tool); len(text) > 50_000 && declared == 0 {
				t.Errorf("--max-output %d: %s answers %d bytes and lists nothing", maxOutput, name, len(text))
			} else if declared > 0 && len(text) < declared*3/4 {
				t.Errorf("--max-output %d: %s lists %d and answers %d bytes", maxOutput, name, declared, len(text))
			}
		}
	}
}

// TestOutputSchemasAreSmall: a client compiles each at every start.
func TestOutputSchemasAreSmall(t *testing.T) {
	const most = 5 << 10
	total := 0
	s := newServer(t, Config{Workspace: t.TempDir(), Tools: []string{"perstack"}})
	for _, l := range s.Listed() {
		total += len(l.Tool.RawOutputSchema)
	}
	if total == 0 || total > most {
		t.Errorf("the output schemas of the default tools have %d bytes, more than %d", total, most)
	}
}
