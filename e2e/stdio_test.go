package e2e

import (
	"encoding/json"
	"testing"
)

// TestModernEra needs no handshake: every request says what it speaks.
func TestModernEra(t *testing.T) {
	c := start(t, workspace(t), "serve")
	c.modern = true
	var found struct{ SupportedVersions []string }
	if err := json.Unmarshal(c.request("server/discover", nil), &found); err != nil {
		t.Fatal(err)
	}
	if len(found.SupportedVersions) != 5 || found.SupportedVersions[0] != "2026-07-28" {
		t.Errorf("supported versions are %v", found.SupportedVersions)
	}
	var result struct {
		ResultType string
		Content    []struct{ Text string }
	}
	raw := c.request("tools/call", map[string]any{"name": "todo", "arguments": map[string]any{"newTodos": []string{"Plan"}}})
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatal(err)
	}
	if result.ResultType != "complete" || result.Content[0].Text != `{"todos":[{"id":0,"title":"Plan","completed":false}]}` {
		t.Errorf("the call answered %s", raw)
	}
}
