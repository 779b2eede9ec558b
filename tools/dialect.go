package tools

import (
	"bytes"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// A Dialect words the results and failures of one profile. It is the only
// place where a profile's way of wording things lives.
type Dialect interface {
	// OK is the result of a call that succeeded; out is what the tool returned.
	OK(call *Call, out any) *mcp.CallToolResult
	// Fail is the result of a call that failed, bad arguments included.
	Fail(call *Call, err *Error) *mcp.CallToolResult
}

// A Call is one call of one tool.
type Call struct {
	Env     *Env
	Profile *Profile
	Tool    *Tool
	Args    map[string]any // as they came; never nil
}

// Arg returns the argument of that name when it came as a string, else "".
func (c *Call) Arg(name string) string {
	text, _ := c.Args[name].(string)
	return text
}

// Text is a result of one text block.
func Text(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.TextContent{Type: mcp.ContentTypeText, Text: text}}}
}

// Object is a result of one text block of compact JSON and the same object as
// structuredContent.
func Object(v any) *mcp.CallToolResult {
	raw := JSON(v)
	r := Text(string(raw))
	r.RawStructuredContent = raw
	return r
}

// Objects is the dialect of profiles that answer with one block of compact JSON. A
// failure is an object with error and code; what a tool adds to it follows.
type Objects struct{}

// OK is out as an object.
func (Objects) OK(_ *Call, out any) *mcp.CallToolResult { return Object(out) }

// Fail says what happened, of what kind it is, and what to try next.
func (Objects) Fail(_ *Call, e *Error) *mcp.CallToolResult {
	object := JSON(struct {
		Error string     `json:"error"`
		Code  fault.Code `json:"code"`
		Hint  string     `json:"hint,omitempty"`
	}{e.Msg, e.Code, e.Hint})
	if e.Data != nil {
		object = join(object, JSON(e.Data))
	}
	return Text(string(object))
}

// join puts the members of the JSON object b behind those of a.
func join(a, b []byte) []byte {
	if bytes.Equal(b, []byte("{}")) {
		return a
	}
	return append(append(bytes.TrimSuffix(a, []byte("}")), ','), b[1:]...)
}
