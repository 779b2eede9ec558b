package server

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	methodInitialize = "initialize"
	methodToolsCall  = "tools/call"
	methodListen     = "subscriptions/listen"
	methodCancelled  = "notifications/cancelled"
)

// A message is the envelope of one JSON-RPC message, taken apart in one pass.
// Every field is a piece of the text it was read from, nil when it is absent.
type message struct {
	version, id, method, params, result, failure []byte

	// What the envelope's readers need of the params.
	tool, requestID   []byte // params.name, params.requestId
	era, capabilities []byte // of params._meta
}

// checkText says what is wrong with text that should be one JSON value.
func checkText(text []byte) *rpcError {
	if !utf8.Valid(text) {
		return &rpcError{Code: mcp.PARSE_ERROR, Message: "the message is not valid UTF-8"}
	}
	if !json.Valid(text) {
		return &rpcError{Code: mcp.PARSE_ERROR, Message: "the message is not one valid JSON value"}
	}
	return nil
}

// readMessage takes apart one valid JSON object.
func readMessage(object []byte) (m message) {
	s := &scanner{b: object}
	s.object(func(key []byte) {
		switch string(key) {
		case "jsonrpc":
			m.version = s.value()
		case "id":
			m.id = s.value()
		case "method":
			m.method = s.value()
		case "result":
			m.result = s.value()
		case "error":
			m.failure = s.value()
		case "params":
			m.readParams(s)
		default:
			s.value()
		}
	})
	return m
}

// readParams folds the case of names as encoding/json does in mcp-go, so that
// both read the same tool and the same era out of the same message.
func (m *message) readParams(s *scanner) {
	m.tool, m.requestID, m.era, m.capabilities = nil, nil, nil, nil
	if s.b[s.i] != '{' {
		m.params = s.value()
		return
	}
	m.params = s.object(func(key []byte) {
		switch {
		case bytes.EqualFold(key, []byte("name")):
			m.tool = s.value()
		case bytes.EqualFold(key, []byte("requestId")):
			m.requestID = s.value()
		case bytes.EqualFold(key, []byte("_meta")) && s.b[s.i] == '{':
			m.readMeta(s)
		default:
			s.value()
		}
	})
}

func (m *message) readMeta(s *scanner) {
	m.era, m.capabilities = nil, nil
	s.object(func(key []byte) {
		switch string(key) {
		case mcp.MetaKeyProtocolVersion:
			m.era = s.value()
		case mcp.MetaKeyClientCapabilities:
			m.capabilities = s.value()
		default:
			s.value()
		}
	})
}

// check says what is wrong with the envelope of a message.
func (m *message) check() *rpcError {
	switch {
	case !isString(m.version) || string(unquote(m.version)) != mcp.JSONRPC_VERSION:
		return invalidRequest(`jsonrpc must be "2.0"`)
	case m.isResponse():
		return nil
	case m.method == nil:
		return invalidRequest("method is missing")
	case !isString(m.method):
		return invalidRequest("method must be a string")
	case m.id != nil && !goodID(m.id):
		return invalidRequest("id must be a string or an integer")
	}
	return nil
}

func (m *message) isResponse() bool {
	return m.method == nil && (m.result != nil || m.failure != nil)
}

// replyID is the id that an answer to m carries, nil for null.
func (m *message) replyID() []byte {
	if goodID(m.id) {
		return m.id
	}
	return nil
}

// A request is one JSON-RPC request, in memory of its own.
type request struct {
	id      string          // as it was sent, quotes included
	method  string          // tools/call, …
	tool    string          // params.name of tools/call
	params  json.RawMessage // as sent, nil when absent
	version string          // the protocol version its _meta names, "" when none
	modern  bool            // of an era without sessions, as its _meta says
	fault   *rpcError       // why it is refused whatever it asks for
	body    json.RawMessage // the message for HandleMessage
}

// request copies m. The body names it by seq: mcp-go would round a large id,
// and confuse 1 with "1".
func (m *message) request(seq uint64) request {
	body := make([]byte, 0, len(m.method)+len(m.params)+80)
	body = append(body, `{"jsonrpc":"2.0","id":`...)
	body = strconv.AppendUint(body, seq, 10)
	body = append(append(body, `,"method":`...), m.method...)
	r := request{id: string(m.id), method: string(unquote(m.method))}
	if m.params != nil {
		body = append(append(body, `,"params":`...), m.params...)
		r.params = json.RawMessage(body[len(body)-len(m.params):])
	}
	r.body = append(body, '}')
	if isString(m.era) {
		r.version = string(unquote(m.era))
		r.modern = mcp.IsModernProtocol(r.version)
	}
	if isString(m.tool) && r.method == methodToolsCall {
		r.tool = string(unquote(m.tool))
	}
	r.fault = m.faultOf(&r)
	return r
}

func (m *message) faultOf(r *request) *rpcError {
	switch {
	case r.modern && !isObject(m.capabilities):
		return invalidParams("missing or invalid _meta field " + mcp.MetaKeyClientCapabilities)
	case r.method == methodToolsCall && m.tool == nil:
		return invalidParams("params.name is missing: it names the tool to call")
	case r.method == methodToolsCall && !isString(m.tool):
		return invalidParams("params.name must be a string: it names the tool to call")
	}
	return nil
}

// subscribes says whether r opens a subscription.
func (r *request) subscribes(versions []string) bool {
	return r.modern && r.method == methodListen && r.check(versions) == nil
}

// check says why r cannot be served over a connection that speaks versions,
// all of them when the list is empty.
func (r *request) check(versions []string) *rpcError {
	if !r.modern || supports(versions, r.version) {
		return r.fault
	}
	if len(versions) == 0 {
		versions = mcp.ValidProtocolVersions
	}
	details := mcp.UnsupportedProtocolVersionError{Version: r.version, Supported: versions}.JSONRPCError().Error
	return &rpcError{Code: details.Code, Message: details.Message, Data: details.Data}
}
