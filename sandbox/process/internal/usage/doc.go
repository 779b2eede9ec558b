// Package usage looks at the memory that commands use: [Usage] of one session, what the
// machine has ended for want of it ([MachineKills]), and the [Reserve] that keeps some for
// the server.
package usage
