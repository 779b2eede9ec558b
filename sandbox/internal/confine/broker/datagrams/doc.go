// Package datagrams has the sockets that the commands of a session get in place of
// datagram sockets, whose every message may name another target, out of the broker's
// sight: one end each of a pair of Unix sockets, by which all that a command sends comes to
// the server. It knows neither commands nor their system calls.
//
// Start with [Sockets], those of one session, and [Socket], the server's end of one. What
// asks for a name is answered (answers_linux.go); what is for another socket of the session
// is delivered to it, known by an address of loopback (inet_linux.go) or by a file
// (unix_linux.go), and waits there until it is received (queue_linux.go).
package datagrams
