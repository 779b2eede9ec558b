package servertest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// Hang is how long a test waits before it says that something hangs.
const Hang = 60 * time.Second

// Ping is a request, and Pong its answer.
const (
	Ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	Pong = `{"jsonrpc":"2.0","id":1,"result":{}}`
)

// Within waits for one value.
func Within[T any](t *testing.T, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(Hang):
		t.Fatalf("waited %v for %s", Hang, what)
	}
	return v
}

// ModernMeta is the _meta of a modern request.
const ModernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// ToolCall is a request that calls a tool.
func ToolCall(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}

// Tagged calls a tool with a tag.
func Tagged(id, tool, tag string) string { return ToolCall(id, tool, `{"tag":"`+tag+`"}`) }

// CancelOf is the notification that cancels a request.
func CancelOf(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

// OKText is the answer of a call with one text.
func OKText(id, s string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + s + `"}]}}`
}

// ErrText is OKText of an error.
func ErrText(id, s string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + s + `"}],"isError":true}}`
}

// Refusal is the answer with an error.
func Refusal(id string, code int, msg string) string {
	quoted, _ := json.Marshal(msg)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, quoted)
}

// Greeting is an initialize request.
func Greeting(id, version string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
}
