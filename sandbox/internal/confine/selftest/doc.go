// Package selftest is what a mechanism of confinement says of itself, and how that is
// proven. Start with [Status]: nothing in it is claimed that was not tried.
//
// A mechanism makes the same forbidden calls (probes_linux.go) outside, where they must
// succeed, and confined, where they must fail; a [Verdict] compares them.
package selftest
