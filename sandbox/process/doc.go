// Package process runs commands: each in its own process tree, with bounded output and a
// deadline, confined by the kernel as far as that can, and ended with all that it started.
//
// Start with [NewCommands], and [Commands.NewShell] for a session. [Shell.Run] runs a
// [Command] to its end; [Shell.Start] starts one that outlives its call (running.go,
// registry.go). shell.go shows the way of a command: it is admitted, given an
// environment (internal/environ) and a private directory (internal/private, whose HOME
// internal/home fills), confined (confine.go decides how, session.go holds the cage),
// started (internal/tree), followed to its end, and told what was refused. What it prints
// is kept by package capture, what it may use is bounded by package quota.
//
// Where commands run in containers (away.go, internal/containers) a Shell hands them to
// the same Shell inside (runner.go), by the protocol of package remote.
package process
