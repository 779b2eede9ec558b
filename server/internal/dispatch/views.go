package dispatch

import (
	"slices"

	mcpserver "github.com/mark3labs/mcp-go/server"
)

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
