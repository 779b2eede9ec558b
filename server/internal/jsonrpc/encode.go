package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
)

// EncodeAnswer makes the line that answers the request with this id.
func EncodeAnswer(id []byte, result any) ([]byte, error) {
	var line bytes.Buffer
	line.WriteString(`{"jsonrpc":"2.0","id":`)
	line.Write(orNull(id))
	line.WriteString(`,"result":`)
	if err := appendResult(&line, result); err != nil {
		return nil, err
	}
	line.WriteString("}\n")
	return fit(&line)
}

// orNull is the id of an answer: an empty one is null.
func orNull(id []byte) json.RawMessage {
	if len(id) == 0 {
		return json.RawMessage("null")
	}
	return id
}

// EncodeError makes the line that refuses the request with this id, nil for null.
// An error without data always fits; when the id itself does not leave room for
// it, it goes without.
func EncodeError(id []byte, e *Error) []byte {
	short := &Error{Code: e.Code, Message: Clip(e.Message, 1000)}
	for _, try := range []failure{{ID: orNull(id), Error: e}, {ID: orNull(id), Error: short}} {
		if line, err := encodeFailure(try); err == nil {
			return line
		}
	}
	line, _ := encodeFailure(failure{Error: short})
	return line
}

// A failure is an answer with an error.
type failure struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *Error          `json:"error"`
}

func encodeFailure(f failure) ([]byte, error) {
	f.Version = mcp.JSONRPC_VERSION
	return encode(f)
}

// EncodeNotice makes the line of a notification, or of a request of ours when
// id is not empty.
func EncodeNotice(id, method string, params any) ([]byte, error) {
	return encode(struct {
		Version string `json:"jsonrpc"`
		ID      string `json:"id,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{mcp.JSONRPC_VERSION, id, method, params})
}

// encode writes v as one line.
func encode(v any) ([]byte, error) {
	var line bytes.Buffer
	if err := appendJSON(&line, v); err != nil {
		return nil, err
	}
	line.WriteByte('\n')
	return fit(&line)
}

// appendJSON writes v without a line end. Text stays as it is: < does not become \u003c.
func appendJSON(line *bytes.Buffer, v any) error {
	enc := json.NewEncoder(line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	line.Truncate(line.Len() - 1)
	return nil
}

// fit returns a line that one message can hold.
func fit(line *bytes.Buffer) ([]byte, error) {
	if line.Len() > MaxMessage {
		return nil, &TooLargeError{size: line.Len()}
	}
	return line.Bytes(), nil
}

// A TooLargeError is a message that no client would accept.
type TooLargeError struct{ size int }

// NewTooLarge refuses a message of a size that a client would accept, and nothing around it.
func NewTooLarge(size int) *TooLargeError { return &TooLargeError{size: size} }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%d bytes, more than the %d that one message can hold", e.size, MaxMessage)
}

// OversizeError refuses a message of a size that is not read.
func OversizeError(size int64) *Error {
	return InvalidRequest(fmt.Sprintf(
		"message of %d bytes exceeds the limit of %d bytes; send the content in smaller parts", size, MaxMessage))
}

// appendResult writes the result of a request. mcp-go's own marshalling of a tool's
// result gives the same members, but copies them into a map first, and writes <, >
// and & of every text as six characters each.
func appendResult(line *bytes.Buffer, result any) error {
	r, isTool := result.(*mcp.CallToolResult)
	if value, ok := result.(mcp.CallToolResult); ok {
		r, isTool = &value, true
	}
	if !isTool || r == nil || len(r.InputRequests) > 0 || r.RequestState != "" {
		return appendJSON(line, result) // one that asks for more input is left to mcp-go
	}
	tool := struct {
		Content    []mcp.Content  `json:"content"`
		IsError    bool           `json:"isError,omitempty"`
		Structured any            `json:"structuredContent,omitempty"`
		ResultType mcp.ResultType `json:"resultType,omitempty"`
		Meta       *mcp.Meta      `json:"_meta,omitempty"`
	}{append([]mcp.Content{}, r.Content...), r.IsError, r.StructuredContent, r.ResultType, r.Meta}
	if len(r.RawStructuredContent) > 0 {
		tool.Structured = r.RawStructuredContent
	}
	return appendJSON(line, tool)
}
