// Package proc is the one owner of processes in this program: it knows every
// child that the program's commands are, collects the ones that nobody waits
// for, reads the system's table of processes, and sends every signal.
//
//   - [Start] forks a child under the eyes of the ledger, [Wait] collects it.
//   - [Adopt] makes this process the parent of what its commands leave behind.
//   - [All], [Read] and [Family] read the table of processes.
//   - [Signal] is the only way to signal a process.
//
// A program that embeds package sandbox starts children of its own. They are
// never collected here: see [Adopt].
package proc
