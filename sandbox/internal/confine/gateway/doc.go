// Package gateway is the way out of a session's network namespace, where a gate permits
// some connections and questions for names.
//
// Start with [Make], which the stage of a session calls in the new namespace: it makes an
// interface that leads to a second network namespace, the gateway, in which no process
// lives and which has no other way. [Open] serves that from the server. What the gate
// permits is led there, where every address is the gateway's own and the server holds the
// sockets; it learns from its end of a connection whom a command meant, and the gate
// decides. Nothing else has a route.
//
// names_linux.go answers questions for names, ports_linux.go and reach_linux.go open
// ports when a command first wants them, spare_linux.go ahead of that, and
// frames_linux.go hears which are wanted.
package gateway
