// Package threads confines commands by what a child inherits from the thread that forks
// it: Landlock, a seccomp filter, no_new_privs and capabilities.
//
// Start with [Confiner]: one policy made ready for the kernel. Its Start runs a function
// that starts a process, and that process and all its descendants are confined: a
// [Domain], one command with refusals, signals and the end.
//
// A goroutine locks its thread, restricts that thread (thread_linux.go), starts the
// command from it and ends without unlocking, which makes the runtime destroy the thread.
// No helper program is needed, and the server itself is never restricted. Threads are
// confined ahead of time (spares_linux.go), so that a command waits for its fork only.
// What the filter cannot judge goes to a broker.Broker; a [Watcher], a process of a few
// instructions beside each command, signals exactly its processes, and ends them with the
// server.
package threads
