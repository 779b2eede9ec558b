// Package broker answers the system calls of commands that a filter cannot judge from
// registers: addresses, paths, processes. It does what is allowed itself, on its own
// copy of the argument; the command never executes the call, so there is nothing to race.
//
// Start with [Broker], which serves one command, [Session], what those of one session
// share, and [Question], one call that waits: its method decide names who decides what
// (question_linux.go). A file has the answers to one kind of call: connect, net (socket,
// bind, listen), unix, file, pty, signal, task, ipc.
//
// Behind a gate (package network) TCP connects go where it admits them, and one to port
// 53 ends at the server, which answers questions for names (outward_linux.go).
//
// A UDP socket names its target in every send, out of the broker's sight, so commands get
// none, unless the network is open: what they get for it is one end of a pair of Unix
// sockets, by which all that they send comes to the server. It answers questions for names,
// and delivers what is for other sockets of the session (package datagrams); the rest goes
// nowhere. What a command receives with its sender's address, the broker receives for it
// (datagram_linux.go). Where a TCP or a Unix socket may connect depends on who listens there
// (package listeners).
package broker
