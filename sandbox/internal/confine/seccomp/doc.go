// Package seccomp writes the filters of commands. Start with [Build], the filter of
// commands that have a broker to ask, and [BuildIsolated], that of commands in
// namespaces. Both are lists of rules (filter_linux.go), one for each system call, which
// bpf_linux.go turns into a program of the kernel's.
//
// A filter sees the registers of a call and nothing that they point to. So a rule lets a
// call through, refuses it, or has the broker asked; options_linux.go, requests_linux.go
// and terminals_linux.go have the lists that rules go by.
package seccomp
