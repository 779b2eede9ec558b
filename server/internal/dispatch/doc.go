// Package dispatch answers MCP requests, whatever transport they came over.
//
// Start with [Dispatcher.Handle]: it gives a [Request] to whatever is in charge of
// its method. A call of one of the server's own tools goes straight to the tool's
// handler, by way of [tasks.Registry] where its client takes tasks; mcp-go routes the
// rest. [Session] is a client as mcp-go sees it.
package dispatch
