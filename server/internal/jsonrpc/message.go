package jsonrpc

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// A Message is the envelope of one JSON-RPC message. A member that is absent is
// nil, one that is null is the text null.
type Message struct {
	Version, ID, Params, Result, Failure json.RawMessage

	method json.RawMessage
}

// CheckUTF8 refuses a text that is not valid UTF-8, which encoding/json would repair.
func CheckUTF8(text []byte) *Error {
	if !utf8.Valid(text) {
		return &Error{Code: mcp.PARSE_ERROR, Message: "the message is not valid UTF-8"}
	}
	return nil
}

// notObject is the refusal of a JSON value that is not an object.
const notObject = "a message must be a JSON object"

// Read takes one message apart. The members are copies. Their names are matched
// exactly, and of two with the same name the last one counts.
func Read(text []byte) (m Message, fault *Error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return m, syntaxFault(err)
	}
	if members == nil { // null
		return m, InvalidRequest(notObject)
	}
	return Message{
		Version: members["jsonrpc"], ID: members["id"], Params: members["params"],
		Result: members["result"], Failure: members["error"], method: members["method"],
	}, nil
}

// Elements takes a batch apart.
func Elements(array []byte) (elements []json.RawMessage, fault *Error) {
	if err := json.Unmarshal(array, &elements); err != nil {
		return nil, syntaxFault(err)
	}
	return elements, nil
}

func syntaxFault(err error) *Error {
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return InvalidRequest(notObject)
	}
	return &Error{Code: mcp.PARSE_ERROR, Message: "the message is not one valid JSON value"}
}

// Check says what is wrong with the envelope of a message.
func (m *Message) Check() *Error {
	switch {
	case !IsString(m.Version) || Unquote(m.Version) != mcp.JSONRPC_VERSION:
		return InvalidRequest(`jsonrpc must be "2.0"`)
	case m.IsResponse():
		return nil
	case m.method == nil:
		return InvalidRequest("method is missing")
	case !IsString(m.method):
		return InvalidRequest("method must be a string")
	case m.ID != nil && !goodID(m.ID):
		return InvalidRequest("id must be a string or an integer")
	}
	return nil
}

// Method returns the method of a request or notification, "" of anything else.
func (m *Message) Method() string {
	if !IsString(m.method) {
		return ""
	}
	return Unquote(m.method)
}

// IsResponse reports whether m answers a request of ours.
func (m *Message) IsResponse() bool {
	return m.method == nil && (m.Result != nil || m.Failure != nil)
}

// ReplyID is the id that an answer to m carries, nil for null.
func (m *Message) ReplyID() []byte {
	if goodID(m.ID) {
		return m.ID
	}
	return nil
}

// IsString reports whether raw, one JSON value or nothing, is a string.
func IsString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// Unquote returns the text of a JSON string.
func Unquote(raw []byte) (text string) {
	_ = json.Unmarshal(raw, &text) // it was valid when it was read
	return text
}

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
