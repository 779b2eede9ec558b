package server

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/servertest"
	"github.com/perstack-ai/perstack-base/tools"
)

// TestEveryToolHasSchemas: tools are read when they are first listed, so all are here.
func TestEveryToolHasSchemas(t *testing.T) {
	s := newServer(t, Config{Workspace: workspace(t)})
	if len(s.lists.known) == 0 {
		t.Fatal("no tool is known")
	}
	for _, k := range s.lists.known {
		listed := s.lists.entry(k).bound().Tool
		schemas := []json.RawMessage{listed.RawInputSchema}
		if listed.RawOutputSchema != nil {
			schemas = append(schemas, listed.RawOutputSchema)
		}
		for _, schema := range schemas {
			var compact bytes.Buffer
			if err := json.Compact(&compact, schema); err != nil || compact.String() != string(schema) || !strings.HasPrefix(string(schema), `{"type":"object"`) {
				t.Errorf("%s: %v in %s", k.name(), err, schema)
			}
		}
	}
}

// TestStartReadsNoTool: a client that only greets waits for no schema, and the list is
// complete all the same, with what an embedding program has registered.
func TestStartReadsNoTool(t *testing.T) {
	read := 0
	own := &tools.Profile{Name: "own", Tools: []*tools.Tool{tools.Define(tools.Info{
		Name: "own_tool", Title: "Own", Description: "Is read late.", NoOutputSchema: true,
		Adapt: func(*tools.Env, *tools.Listing) { read++ },
	}, func(context.Context, *tools.Env, struct {
		A string `json:"a" doc:"Anything."`
	}) (string, error) {
		return "", nil
	})}}
	s := newServer(t, Config{Workspace: workspace(t), Tools: []string{"own"}, Profiles: []*tools.Profile{own}, Extension: &Extension{
		Register: func(m *mcpserver.MCPServer) {
			m.AddTool(mcp.NewTool("extension_tool"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("done"), nil
			})
		},
	}})
	l := dialServer(t, s)
	l.Send(servertest.Greeting("1", "2025-11-25"))
	if got := l.Next(); !strings.Contains(got, `"serverInfo"`) || read != 0 {
		t.Errorf("%d tools were read to greet: %s", read, got)
	}
	for range 2 {
		l.Send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		got := l.Next()
		for _, part := range []string{`"name":"own_tool"`, `"description":"Is read late."`, `"required":["a"]`, `"name":"extension_tool"`} {
			if !strings.Contains(got, part) {
				t.Errorf("%s is not in %s", part, got)
			}
		}
	}
	if read != 1 {
		t.Errorf("a tool was read %d times", read)
	}
}

// TestGoneToolIsNotListed: what mcp-go still counts after its tool has gone is left out.
func TestGoneToolIsNotListed(t *testing.T) {
	s := newServer(t, Config{Workspace: workspace(t)})
	gone := mcp.Tool{Name: "gone", RawInputSchema: toFollow}
	if listed := s.lists.complete(t.Context(), []mcp.Tool{gone, {Name: "readTextFile", RawInputSchema: toFollow}}); len(listed) != 1 || listed[0].Title == "" {
		t.Errorf("listed: %+v", listed)
	}
}
