// Package sandbox is the only part of perstack-base that touches the machine.
//
// Start with three types:
//
//   - [FS]: files below one workspace directory. No path leaves it, links
//     included, and every write is atomic.
//   - [Shell]: commands of one session, each in its own process tree, with
//     bounded output and a deadline. [Commands] makes them and decides in
//     confine.go how far the kernel confines what they run.
//   - [Limits]: every bound of the machine, with the reason for its number.
//
// # Threat model
//
// The caller is a language model that may have read hostile text, so every
// argument is hostile. Other processes, and commands that this package itself
// started, change the workspace while a call runs: nothing here checks a path
// and then uses it, the kernel resolves and refuses in one step.
//
// The package knows nothing of MCP or of models. It returns plain errors that
// state facts (see errors.go); the words for a model are chosen in package tools.
package sandbox
