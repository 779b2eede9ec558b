// Package kernel is what confinement asks of the kernel, and what it knows of it; it
// knows no session and no command.
//
// Start with [Features], which [Probe] tries out: what the kernel, and whatever contains
// this program, let us use. [Call] is one step of a process that runs no Go, made by
// [Spawn] (child_linux.go; the assembly runs it). landlock_linux.go and caps_linux.go
// restrict a thread, install_linux.go puts it under a filter, and throwaway_linux.go has
// the runtime give threads away and make them. memory_linux.go and procdir_linux.go look
// at other processes, socket_linux.go at sockets, and inet_linux.go reads their addresses.
//
// # What the process has to know
//
// The thread that main started on never ends, so it is never confined: a
// goroutine that lands on it hands over to another thread. A server should still
// keep it busy with an init function in package main that calls
// runtime.LockOSThread. [PrepareProcess] makes the process undumpable, which keeps
// commands out of the memory of the one server thread that shares their domain while it
// starts them, and the reaper of orphaned descendants. [Harden] belongs at the
// start of main.
package kernel
