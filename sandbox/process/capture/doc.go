// Package capture keeps what commands print: of each stream the first and the last
// bytes, exactly, in bounded memory.
//
// Start with [Stream], which is written to while a command runs; [Output] is what it
// has kept in the end, [Part] what of it a reader has not seen yet, and [Tail] its last
// line. [Drain] empties a pipe into it.
package capture
