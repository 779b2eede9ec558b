// Package stream serves one client over a byte stream.
//
// Start with [Conn], the connection: [Conn.Receive] takes in one message, calls run
// side by side, and answers leave one line at a time. [Stdio] is a connection over
// standard input and output; package web makes one of each stream of HTTP+SSE.
package stream
