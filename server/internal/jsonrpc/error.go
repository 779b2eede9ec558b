package jsonrpc

import "github.com/mark3labs/mcp-go/mcp"

// An Error is the error member of an answer.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// InvalidRequest refuses a message for its envelope.
func InvalidRequest(text string) *Error {
	return &Error{Code: mcp.INVALID_REQUEST, Message: text}
}

// InvalidParams refuses a message for its params.
func InvalidParams(text string) *Error {
	return &Error{Code: mcp.INVALID_PARAMS, Message: text}
}

// InFlight refuses a request whose id is still in use.
func InFlight(id []byte) *Error {
	return InvalidRequest("request id " + Clip(string(id), 200) + " is already in flight")
}

// Clip cuts text that a client sent to a length that an answer can quote, in bytes.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n] + "…"
}
