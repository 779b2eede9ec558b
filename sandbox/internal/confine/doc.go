// Package confine has the kernel confine commands: what they read and write,
// whom they talk to and signal, and that none of them outlives the session.
//
// Start with three types:
//
//   - [Policy]: what commands may reach, as host paths; [DefaultPolicy] computes it.
//   - [Confiner]: one policy made ready for the kernel. Its Start runs a function
//     that starts a process, and that process and all its descendants are confined.
//   - [Domain]: one command with its descendants: refusals, signals, the end.
//
// # How
//
// Landlock, seccomp, no_new_privs and capabilities belong to a thread, and a
// child inherits them from the thread that forks it. So a goroutine locks its
// thread, restricts that thread, starts the command from it and ends without
// unlocking, which makes the runtime destroy the thread. No helper program is
// needed, and the server itself is never restricted. Threads are confined ahead
// of time, so that a command waits for its fork only.
//
// What filters cannot judge from registers (addresses, paths, processes) goes to
// a broker in the server, which does what is allowed itself, on its own copy of
// the argument; the command never executes the call, so there is nothing to race.
//
// Behind a gate (package network) TCP connects go where it admits them, and one to port
// 53 ends at the server, which answers questions for names.
//
// A UDP socket names its target in every send, out of the broker's sight, so commands get
// none, unless the network is open: what they get for it is one end of a pair of Unix
// sockets, by which all that they send comes to the server. It answers questions for
// names, and delivers what is for other sockets of the session (datagrams_linux.go); the
// rest goes nowhere. What a command receives with its sender's address, the broker
// receives for it.
//
// # Namespaces
//
// An [Isolator] does the same by other means, where Landlock is missing or more is
// wanted: a user, process, mount, IPC and network namespace for the session, in
// which only what the policy names exists. Their first process, the keeper, is made
// of system calls and runs no Go; it makes those calls that it is asked for in
// memory that it shares with the server, and ends with the server, which ends all.
// A short-lived process of this program ([Stage]) makes the mounts. Landlock, where
// there is any, and a filter come on top; a broker does not, because it would judge
// paths by the wrong tree of mounts.
//
// With a gate ([Isolation]) the session has a way out: an interface that leads to a
// second network namespace, the gateway, in which no process lives and which has no
// other way. What the gate permits is led there, where every address is the gateway's
// own and the server holds the sockets; it learns from its end of a connection whom a
// command meant, and the gate decides. Nothing else has a route.
//
// Each command is a [Cell] below a process that gets every orphan of it, so that it
// can be told from the others of its session, which see and may signal it. That
// process has no children left when the cell is empty, as only the kernel can tell.
//
// # What the process has to know
//
// The thread that main started on never ends, so it is never confined: a
// goroutine that lands on it hands over to another thread. A server should still
// keep it busy with an init function in package main that calls
// runtime.LockOSThread. New makes the process undumpable, which keeps commands
// out of the memory of the one server thread that shares their domain while it
// starts them, and the reaper of orphaned descendants. [Harden] belongs at the
// start of main.
package confine
