// Package tasks keeps the calls that go on after their client has stopped waiting:
// the MCP Tasks extension, SEP-2663.
//
// Start with [Registry.Serve]: it runs a call, and answers with a [View] of a task
// when the call takes long. [Registry.Get], [Registry.Update], [Registry.Cancel] and
// [Registry.Watch] are what clients do with a task.
package tasks
