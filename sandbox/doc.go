// Package sandbox, with the packages below it, is the only part of perstack-base that
// touches the machine. This one holds what they share: [Limits], every bound of the
// machine with the reason for its number, and the errors about paths.
//
// Start with three others:
//
//   - files: FS, the files below one workspace directory. No path leaves it, links
//     included, and every write is atomic.
//   - process: Shell, the commands of one session, each in its own process tree, with
//     bounded output and a deadline; Commands makes them and decides how far the kernel
//     confines what they run.
//   - scratch: directories outside of the workspace: run workspaces, artifacts, and the
//     caches of build tools.
//
// files and process know nothing of each other; trace is told by all what was done.
//
// # Threat model
//
// The caller is a language model that may have read hostile text, so every
// argument is hostile. Other processes, and commands that these packages themselves
// started, change the workspace while a call runs: nothing here checks a path
// and then uses it, the kernel resolves and refuses in one step.
//
// Nothing here knows of MCP or of models. Errors are plain and state facts (see
// errors.go); the words for a model are chosen in package tools.
package sandbox
