// Package listeners tells who listens at an address of this machine: the session itself,
// this program, or somebody else, to whom its commands must not come.
//
// Start with [TCP] and [Names], the sockets of a session that listen. A [Held] listener is
// held by the broker too, so that nobody else can listen there while a connect is under way.
// [Own] notes the listeners of this program (ownservers_linux.go).
package listeners
