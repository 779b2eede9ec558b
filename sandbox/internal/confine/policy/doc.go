// Package policy says what commands may reach, as paths of the machine.
//
// Start with [DefaultPolicy], which computes a [Policy] from what the user has and
// asked for. [Policy.Pin] looks all of it up, once: from then on the places are
// descriptors, found by a walker that enters nothing that commands can write
// (walker_linux.go), and what commands do to names changes nothing.
package policy
