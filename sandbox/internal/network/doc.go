// Package network decides what commands reach by name or address, and gets it for
// them: it answers their questions for names, and relays their connections.
//
// Start with two types:
//
//   - [Rules]: what --network names; [Parse] reads it.
//   - [Gate]: one session's way out. Answer answers a question for a name, Admit
//     judges an address, Relay connects a command with it.
//
// An address is reached when a rule names it, or when this session was handed it for
// a name that a rule names: so the check is of what is connected to, and a name that
// leads elsewhere the next time changes nothing. What brings questions and
// connections here, and what keeps commands from any other way, are the mechanisms of
// package confine: a gateway of the session's own in namespaces, the broker in threads.
package network
