package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/server/internal/servertest"
	"github.com/perstack-ai/perstack-base/server/internal/tasks"
	"github.com/perstack-ai/perstack-base/tools"
)

const taskMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// TestTaskResults: what a task has in the end is what a direct call answers, also when
// that cannot be sent, when the tool panics, and when the message breaks the protocol.
func TestTaskResults(t *testing.T) {
	b := servertest.New()
	lasting := func(name string, work func() (*mcp.CallToolResult, error)) {
		b.AddTool(mcp.NewTool(name), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if task := tools.TaskOf(ctx); task != nil {
				task.Begin()
				time.Sleep(20 * time.Millisecond)
			}
			return work()
		})
	}
	text := func(n int) func() (*mcp.CallToolResult, error) {
		return func() (*mcp.CallToolResult, error) { return mcp.NewToolResultText(strings.Repeat("x", n)), nil }
	}
	lasting("small", text(10))
	lasting("large", text(jsonrpc.MaxMessage-4096)) // fits into an answer, but not with a task around it
	lasting("larger", text(jsonrpc.MaxMessage))
	lasting("falls", func() (*mcp.CallToolResult, error) { panic("secret") })
	lasting("errs", func() (*mcp.CallToolResult, error) { return nil, fmt.Errorf("secret") })
	d := b.Dispatcher()
	d.Tasks = tasks.New(-1, time.Hour)
	for tool, want := range map[string]string{
		"small": "xxxxxxxxxx", "large": "too_large: ", "larger": "too_large: ", "falls": "internal: falls failed", "errs": "internal: errs failed",
	} {
		direct := resultOf(t, answer(t, d, []byte(`{"jsonrpc":"2.0","id":"i","method":"tools/call","params":{"name":"`+tool+`",`+servertest.ModernMeta+`}}`)))
		var v struct {
			TaskID, Status string
			Result         json.RawMessage
		}
		begun := resultOf(t, answer(t, d, []byte(`{"jsonrpc":"2.0","id":"i","method":"tools/call","params":{"name":"`+tool+`",`+taskMeta+`}}`)))
		if json.Unmarshal(begun, &v) != nil || v.Status != "working" {
			t.Fatalf("%s: %.200s", tool, begun)
		}
		for v.Status == "working" {
			_ = json.Unmarshal(resultOf(t, answer(t, d, []byte(`{"jsonrpc":"2.0","id":"i","method":"tasks/get","params":{"taskId":"`+v.TaskID+`",`+taskMeta+`}}`))), &v)
			time.Sleep(time.Millisecond)
		}
		if v.Status != "completed" || !strings.Contains(string(v.Result), want) || tool != "large" && string(v.Result) != string(direct) {
			t.Errorf("%s: %s %.300s, want %.300s", tool, v.Status, v.Result, direct)
		}
	}
}

func resultOf(t *testing.T, line string) json.RawMessage {
	t.Helper()
	var m struct{ Result json.RawMessage }
	if json.Unmarshal([]byte(line), &m) != nil || m.Result == nil {
		t.Fatalf("%.300s", line)
	}
	return m.Result
}

// TestLeases: what is held ends once, with the last who holds it.
func TestLeases(t *testing.T) {
	ends := 0
	l, release := dispatch.NewLease(func() { ends++ })
	second := l.Take()
	release()
	release()
	if ends != 0 {
		t.Error("it ended although it was held")
	}
	second()
	second()
	if ends != 1 {
		t.Errorf("it ended %d times", ends)
	}
}
