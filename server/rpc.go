package server

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// An rpcError is the error member of an answer.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func invalidRequest(text string) *rpcError {
	return &rpcError{Code: mcp.INVALID_REQUEST, Message: text}
}

func invalidParams(text string) *rpcError {
	return &rpcError{Code: mcp.INVALID_PARAMS, Message: text}
}

func supports(versions []string, version string) bool {
	if len(versions) == 0 {
		return mcp.IsValidProtocolVersion(version)
	}
	return slices.Contains(versions, version)
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// pooledBytes is the largest buffer that is kept for the next message.
const pooledBytes = 64 << 10

func recycle(b *bytes.Buffer) {
	if b.Cap() <= pooledBytes {
		b.Reset()
		buffers.Put(b)
	}
}

// appendJSON writes v without a line end, results of tools the short way.
func appendJSON(b *bytes.Buffer, v any) error {
	switch r := v.(type) {
	case *mcp.CallToolResult:
		return appendResult(b, r)
	case mcp.CallToolResult:
		return appendResult(b, &r)
	}
	return appendEncoded(b, v)
}

// encodeAnswer makes the line that answers id, nil for null, with its member
// result or error.
func encodeAnswer[ID string | []byte](b *bytes.Buffer, id ID, member string, v any) error {
	b.Reset()
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	if len(id) == 0 {
		b.WriteString("null")
	} else {
		b.WriteString(string(id))
	}
	b.WriteString(`,"` + member + `":`)
	err := appendJSON(b, v)
	b.WriteString("}\n")
	if err == nil && b.Len() > maxMessage {
		return &tooLargeError{size: b.Len()}
	}
	return err
}

// encodeError makes the line that refuses id. An error without data always
// fits; when the id itself does not leave room for it, it goes without.
func encodeError(b *bytes.Buffer, id []byte, e *rpcError) {
	if encodeAnswer(b, id, "error", e) == nil {
		return
	}
	short := &rpcError{Code: e.Code, Message: clip(e.Message, 1000)}
	if encodeAnswer(b, id, "error", short) != nil {
		_ = encodeAnswer(b, "", "error", short)
	}
}

// encodeNotice makes the line of a notification, or of a request of ours when
// id is not empty.
func encodeNotice(b *bytes.Buffer, id, method string, params any) error {
	b.Reset()
	b.WriteString(`{"jsonrpc":"2.0",`)
	if id != "" {
		b.WriteString(`"id":"` + id + `",`)
	}
	b.WriteString(`"method":`)
	if err := appendJSON(b, method); err != nil {
		return err
	}
	if params != nil {
		b.WriteString(`,"params":`)
		if err := appendJSON(b, params); err != nil {
			return err
		}
	}
	b.WriteString("}\n")
	if b.Len() > maxMessage {
		return &tooLargeError{size: b.Len()}
	}
	return nil
}

// A tooLargeError is a message that no client would accept.
type tooLargeError struct{ size int }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("%d bytes, more than the %d that one message can hold", e.size, maxMessage)
}

// clip cuts text that was sent to us to what a message of ours can quote.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n] + "…"
}
