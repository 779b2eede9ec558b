// Package web serves many clients over HTTP.
//
// Start with [Streamable] and [SSE], the two transports, and serve in serve.go,
// which both run on: one http.Server behind the guard, which decides who may reach
// it. A [Streamable] client has a session in clients.go, and the answer to one
// request of it is a reply; each stream of [SSE] is a connection of package stream.
package web
