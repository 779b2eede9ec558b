package e2e

import (
	"encoding/json"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/transcript"
)

// TestTranscriptsOnStdio replays every transcript through the binary.
func TestTranscriptsOnStdio(t *testing.T) {
	scripts, err := transcript.Load("../testdata/transcripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		t.Run(script.Profile+"/"+script.Tool, func(t *testing.T) {
			t.Parallel()
			dir := workspace(t)
			if err := script.Setup(dir); err != nil {
				t.Fatal(err)
			}
			c := start(t, dir, append([]string{"serve", "--tools", script.Profile}, script.Arguments(dir)...)...)
			c.initialize()
			answers, err := script.Run(dir, c.call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := script.Diff(answers); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestModernEra needs no handshake: every request says what it speaks.
func TestModernEra(t *testing.T) {
	c := start(t, workspace(t), "serve")
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "e2e", "version": "1"},
	}
	var found struct{ SupportedVersions []string }
	if err := json.Unmarshal(c.request("server/discover", map[string]any{"_meta": meta}), &found); err != nil {
		t.Fatal(err)
	}
	if len(found.SupportedVersions) != 5 || found.SupportedVersions[0] != "2026-07-28" {
		t.Errorf("supported versions are %v", found.SupportedVersions)
	}
	var result struct {
		ResultType string
		Content    []struct{ Text string }
	}
	raw := c.request("tools/call", map[string]any{"_meta": meta, "name": "todo", "arguments": map[string]any{"newTodos": []string{"Plan"}}})
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatal(err)
	}
	if result.ResultType != "complete" || result.Content[0].Text != `{"todos":[{"id":0,"title":"Plan","completed":false}]}` {
		t.Errorf("the call answered %s", raw)
	}
}
