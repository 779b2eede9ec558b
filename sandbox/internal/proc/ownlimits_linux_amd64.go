package proc

import "golang.org/x/sys/unix"

// systemCall is a call, and a stop after it (syscall; int3).
var systemCall = [...]byte{0x0f, 0x05, 0xcc}

// codeSegment is that of 64-bit programs.
const codeSegment = 0x33

// childState are the registers of a stopped child.
type childState struct{ regs unix.PtraceRegsAmd64 }

func stoppedAt(pid int) (c childState, err error) {
	if err = unix.PtraceGetRegsAmd64(pid, &c.regs); err == nil && c.regs.Cs != codeSegment {
		err = unix.ENOEXEC
	}
	return c, err
}

func (c childState) put(pid int) error { return unix.PtraceSetRegsAmd64(pid, &c.regs) }
func (c childState) next() uintptr     { return uintptr(c.regs.Rip) }
func (c childState) stack() uintptr    { return uintptr(c.regs.Rsp) }
func (c childState) result() int64     { return int64(c.regs.Rax) }

// calling is c about to make a system call of up to four arguments.
func (c childState) calling(nr uintptr, args ...uintptr) childState {
	c.regs.Rax, c.regs.Orig_rax = uint64(nr), ^uint64(0) // it is in no call that is to be made again
	for i, to := range []*uint64{&c.regs.Rdi, &c.regs.Rsi, &c.regs.Rdx, &c.regs.R10} {
		*to = uint64(args[i])
	}
	return c
}
