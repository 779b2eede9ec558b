// Package e2e proves the real binary from outside: every transcript over every
// transport, the life and death of the process, and clients that nobody here
// wrote. Start with main_test.go, which builds the binary once, and client_test.go,
// which speaks to it.
package e2e
