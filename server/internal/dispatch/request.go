package dispatch

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/sandbox/trace"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

// Methods that are handled in a way of their own.
const (
	MethodInitialize = "initialize"
	MethodToolsCall  = "tools/call"
	MethodListen     = "subscriptions/listen"
	MethodCancelled  = "notifications/cancelled"
)

// A Request is one MCP request.
type Request struct {
	ID      string          // as it was sent, quotes included
	Method  string          // tools/call, …
	Tool    string          // params.name of tools/call
	Params  json.RawMessage // as sent, nil when absent
	Version string          // the protocol version its _meta names, "" when none
	Modern  bool            // of an era without sessions, as its _meta says

	Received time.Time // for its span; zero = when it is handled

	span   *trace.Span // nil: there are no spans
	routed bool        // it was passed on to be answered

	fault     *jsonrpc.Error // why it is refused whatever it asks for
	params    params
	malformed bool // params do not have the form of a tool call's
}

// params are those of a tool call. Those of other methods are read by who answers
// them; name and _meta mean the same in all.
type params struct {
	Name      json.RawMessage `json:"name"`
	Arguments any             `json:"arguments"`
	Meta      any             `json:"_meta"`
	Task      *mcp.TaskParams `json:"task"`
	mcp.MultiRoundTripParams
}

// NewRequest reads the params of m, a request.
func NewRequest(m *jsonrpc.Message) Request {
	r := Request{ID: string(m.ID), Method: m.Method(), Params: m.Params}
	if m.Params != nil {
		// What can be read is read, also when something else is of the wrong type.
		r.malformed = json.Unmarshal(m.Params, &r.params) != nil
	}
	meta, isObject := r.params.Meta.(map[string]any)
	r.malformed = r.malformed || r.params.Meta != nil && !isObject
	r.Version, _ = meta[mcp.MetaKeyProtocolVersion].(string)
	r.Modern = mcp.IsModernProtocol(r.Version)
	if r.Method == MethodToolsCall && jsonrpc.IsString(r.params.Name) {
		r.Tool = jsonrpc.Unquote(r.params.Name)
	}
	r.fault = r.faultOf(meta)
	return r
}

func (r *Request) faultOf(meta map[string]any) *jsonrpc.Error {
	_, capable := meta[mcp.MetaKeyClientCapabilities].(map[string]any)
	switch {
	case r.Modern && !capable:
		return jsonrpc.InvalidParams("missing or invalid _meta field " + mcp.MetaKeyClientCapabilities)
	case r.Method == MethodToolsCall && r.params.Name == nil:
		return jsonrpc.InvalidParams("params.name is missing: it names the tool to call")
	case r.Method == MethodToolsCall && !jsonrpc.IsString(r.params.Name):
		return jsonrpc.InvalidParams("params.name must be a string: it names the tool to call")
	}
	return nil
}

// CancelledID returns the id of the request that notifications/cancelled is about,
// as it was sent, "" when there is none.
func CancelledID(m *jsonrpc.Message) string {
	var about struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(m.Params, &about) // a malformed one cancels nothing
	return string(about.ID)
}

// Subscribes reports whether r opens a subscription.
func (r *Request) Subscribes(versions []string) bool {
	return r.Modern && r.Method == MethodListen && r.Check(versions) == nil
}

// Check says why r cannot be served over a connection that speaks versions,
// all of them when the list is empty.
func (r *Request) Check(versions []string) *jsonrpc.Error {
	if !r.Modern || supports(versions, r.Version) {
		return r.fault
	}
	if len(versions) == 0 {
		versions = mcp.ValidProtocolVersions
	}
	details := mcp.UnsupportedProtocolVersionError{Version: r.Version, Supported: versions}.JSONRPCError().Error
	return &jsonrpc.Error{Code: details.Code, Message: details.Message, Data: details.Data}
}

func supports(versions []string, version string) bool {
	if len(versions) == 0 {
		return mcp.IsValidProtocolVersion(version)
	}
	return slices.Contains(versions, version)
}

// formFault refuses params that do not decode.
func (r *Request) formFault() *jsonrpc.Error {
	return jsonrpc.InvalidParams("the params of " + jsonrpc.Clip(r.Method, 100) + " do not have the form that the protocol gives them")
}

// message is r for mcp-go's HandleMessage, under an id that means nothing: mcp-go
// would round a large one, and confuse 1 with "1".
func (r *Request) message() (json.RawMessage, error) {
	return json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      int             `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params,omitempty"`
	}{mcp.JSONRPC_VERSION, 1, r.Method, r.Params})
}

// How clients say that they show views: they declare the MCP Apps extension, with the
// type of documents that they show.
const (
	ViewsExtension = "io.modelcontextprotocol/ui"
	ViewType       = "text/html;profile=mcp-app"
)

// takesViews reports whether the client shows views: of the modern era as the request
// says, of the others as it said when it connected.
func takesViews(r *Request, client mcpserver.ClientSession) bool {
	extensions, _ := r.capabilities()["extensions"].(map[string]any)
	if !r.Modern {
		known, ok := client.(mcpserver.SessionWithClientInfo)
		if !ok {
			return false
		}
		extensions = known.GetClientCapabilities().Extensions
	}
	return DeclaresViews(extensions)
}

// DeclaresViews reports whether extensions that a client declares are of one that shows
// views.
func DeclaresViews(extensions map[string]any) bool {
	settings, _ := extensions[ViewsExtension].(map[string]any)
	types, _ := settings["mimeTypes"].([]any)
	return slices.Contains(types, any(ViewType))
}
