// Package hints tells in words what kept a command from what it wanted, and which flag of
// the user's would permit it.
//
// Start with [Refusal], which the broker has on record, and [Explainer], which
// reads what the command itself said. Each cause is told once.
package hints
