package jsonrpc

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// TestResultsAreWhatTheLibraryWrites compares the results that are written
// with mcp-go's own, member by member.
func TestResultsAreWhatTheLibraryWrites(t *testing.T) {
	meta := mcp.NewMetaFromMap(map[string]any{"io.modelcontextprotocol/serverInfo": map[string]any{"name": "x"}})
	modern := &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("a<b>&\u2028\"\\\n")}}
	modern.Meta, modern.ResultType = meta, mcp.ResultTypeComplete
	annotated := mcp.NewTextContent("note")
	annotated.Annotations = &mcp.Annotations{Audience: []mcp.Role{mcp.RoleUser}}
	asking := &mcp.CallToolResult{Content: []mcp.Content{}}
	asking.RequestState = "state"
	for name, r := range map[string]*mcp.CallToolResult{
		"empty":      {},
		"text":       mcp.NewToolResultText("hello"),
		"error":      mcp.NewToolResultError("no"),
		"raw":        {Content: []mcp.Content{mcp.NewTextContent(`{"a":"<"}`)}, RawStructuredContent: json.RawMessage(`{"a":"<"}`)},
		"structured": {Content: []mcp.Content{}, StructuredContent: map[string]any{"a": 1.5}},
		"modern":     modern,
		"image":      {Content: []mcp.Content{mcp.NewImageContent("AAAA", "image/png"), annotated}},
		"asking":     asking,
	} {
		var line bytes.Buffer
		if err := appendResult(&line, r); err != nil {
			t.Fatal(name, err)
		}
		got := line.Bytes()
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(name, err)
		}
		var a, b any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: wrote %s, mcp-go writes %s", name, got, want)
		}
	}
}
