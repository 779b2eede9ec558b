//go:build amd64 || arm64

package seccomp

import "golang.org/x/sys/unix"

// oldSetOptions is PTRACE_SETOPTIONS by its first number, which some architectures have.
const oldSetOptions = 0x15

// tracingRule refuses to have a traced process stop at its exit (PTRACE_O_TRACEEXIT), as
// a kernel does that does not know it. Such a process ends when its tracer lets it, or has
// ended: of two that trace each other so neither does, once they are killed, and nothing
// in the system can end them any more. gdb and the sanitizers do without; strace does not.
func tracingRule() rule {
	return rule{nr: unix.SYS_PTRACE, otherwise: retAllow, clauses: []clause{{then: retErrno(unix.EINVAL), when: []cond{
		{arg: 0, in: []uint32{oldSetOptions, unix.PTRACE_SETOPTIONS, unix.PTRACE_SEIZE}},
		{arg: 3, mask: unix.PTRACE_O_TRACEEXIT, any: true}}}}}
}
