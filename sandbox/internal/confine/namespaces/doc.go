// Package namespaces confines commands to a view of the machine in which only what the
// policy names exists: a user, process, mount, IPC and network namespace for each session.
//
// Start with [Isolator], which holds them, and its Start, which runs a [Program] in a
// [Cell]: one command with all that it started.
//
// The first process of the namespaces, the [Keeper], is made of system calls and runs no
// Go; it makes those calls that it is asked for in memory that it shares with the server
// (arena_linux.go), and ends with the server, which ends all. A short-lived process of
// this program, the stage (stage_linux.go), makes the mounts: view_linux.go says which,
// mounts_linux.go how. Landlock, where there is any, and a filter come on top; a broker
// does not, because it would judge paths by the wrong tree of mounts.
//
// Each cell has a process that gets every orphan of it, so that it can be told from the
// others of its session, which see and may signal it. That process has no children left
// when the cell is empty, as only the kernel can tell.
//
// guardgit_linux.go and gitlock_linux.go keep commands from changing what git executes.
// reserve_linux.go holds memory for the server.
package namespaces
