// Package gvisor runs the program in gVisor, a kernel of its own on which many platforms
// for agents run. It has neither Landlock nor seccomp's notifications, so namespaces alone
// confine commands there: in a gVisor of today, which is built from go.mod, doctor has to
// prove that and the batteries of the confinement have to hold; in Debian's, which is too
// old, doctor has to say so.
//
// What cannot be had here is skipped, and said. Start with gvisor_linux_test.go.
package gvisor
