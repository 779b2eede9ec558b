// Package confine has the kernel confine commands: what they read and write,
// whom they talk to and signal, and that none of them outlives the session.
//
// Start with three types, all in jail.go:
//
//   - [Isolation]: what a session's commands may reach (a policy.Policy) and what guards it.
//   - [Jail]: that made ready for the kernel by one mechanism. [New] makes it, for a [Tier].
//   - [Running]: one command with its descendants: refusals, signals, the end.
//
// A mechanism of confinement is an implementation of Jail and an entry in makers
// (confine_linux.go). Nobody asks which one it is: what only some can do, a method says.
//
// # Rooms
//
//   - threads: the Jail of the tier [Threads], Landlock and a seccomp filter that
//     commands inherit from the thread that starts them. Start with its Confiner.
//   - broker: its other half, which answers the system calls that the filter cannot judge;
//     what it has of sockets is in rooms of its own, datagrams and listeners.
//   - namespaces: the Jail of the tier [Namespaces], in which nothing exists but what
//     commands may reach. Start with its Isolator.
//   - gateway: the way out of its network, for what a gate permits.
//   - seccomp: the filters of both, as rules.
//   - selftest: what both say of themselves, and the calls that prove it.
//   - kernel: system calls, processes that run no Go, Landlock; it knows no session.
//   - policy: what may be reached. hints: what was refused, in words.
//
// Nobody but this package imports both threads and namespaces, and neither knows the other.
//
// # Tests
//
// The tests here are the battery: the same probes, by commands in both tiers. It looks
// into the rooms, and therefore they export more than they use of each other. What is
// about one room alone is tested there.
package confine
