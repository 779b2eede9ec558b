package tools

import "github.com/mark3labs/mcp-go/mcp"

// A Dialect puts results and failures on the wire of one profile. It is the only
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
