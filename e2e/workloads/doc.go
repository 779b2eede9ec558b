// Package workloads proves with real programs that confinement is not felt: each row
// of its table works, or fails at once with the sentence that names the way out.
// docs/workloads.md is written from the table:
//
//	go test ./e2e/workloads -run TestDocument -update
//
// PERSTACK_BASE_WORKLOADS=all runs the slow rows, too, and
// PERSTACK_BASE_WORKLOADS=landlock (or isolate) those of one mechanism.
package workloads
