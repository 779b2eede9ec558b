package server

import (
	"bytes"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// appendResult writes the result of a tool call. It is what mcp-go's own
// marshalling would write, in one pass instead of four: most of a result is text
// that was JSON already and need not be looked at again.
func appendResult(b *bytes.Buffer, r *mcp.CallToolResult) error {
	if len(r.InputRequests) > 0 || r.RequestState != "" {
		text, err := r.MarshalJSON()
		b.Write(text)
		return err
	}
	b.WriteString(`{"content":[`)
	for i, content := range r.Content {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := appendContent(b, content); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	if r.IsError {
		b.WriteString(`,"isError":true`)
	}
	structured := any(r.StructuredContent)
	if len(r.RawStructuredContent) > 0 {
		b.WriteString(`,"structuredContent":`)
		b.Write(r.RawStructuredContent)
		structured = nil
	}
	for _, member := range []struct {
		name  string
		value any
		set   bool
	}{
		{"structuredContent", structured, structured != nil},
		{"resultType", r.ResultType, r.ResultType != ""},
		{"_meta", r.Meta, r.Meta != nil},
	} {
		if !member.set {
			continue
		}
		b.WriteString(`,"` + member.name + `":`)
		if err := appendEncoded(b, member.value); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// appendContent writes one block; a plain text block, the usual one, directly.
func appendContent(b *bytes.Buffer, content mcp.Content) error {
	text, ok := content.(mcp.TextContent)
	if !ok || text.Annotations != nil || text.Meta != nil || text.Type != mcp.ContentTypeText {
		return appendEncoded(b, content)
	}
	b.WriteString(`{"type":"text","text":`)
	if err := appendEncoded(b, text.Text); err != nil {
		return err
	}
	b.WriteByte('}')
	return nil
}

// appendEncoded writes v without a line end. Text stays as it is: < is not \u003c.
func appendEncoded(b *bytes.Buffer, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	if n := b.Len(); err == nil && n > 0 {
		b.Truncate(n - 1)
	}
	return err
}
