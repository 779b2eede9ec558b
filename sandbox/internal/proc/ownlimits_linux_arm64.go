package proc

import (
	"debug/elf"

	"golang.org/x/sys/unix"
)

// systemCall is a call, and a stop after it (svc #0; brk #0).
var systemCall = [...]byte{0x01, 0x00, 0x00, 0xd4, 0x00, 0x00, 0x20, 0xd4}

// callRegister has the number of a system call.
const callRegister = 8

// childState are the registers of a stopped child.
type childState struct{ regs unix.PtraceRegsArm64 }

func stoppedAt(pid int) (c childState, err error) {
	return c, unix.PtraceGetRegSetArm64(pid, int(elf.NT_PRSTATUS), &c.regs)
}

func (c childState) put(pid int) error {
	return unix.PtraceSetRegSetArm64(pid, int(elf.NT_PRSTATUS), &c.regs)
}
func (c childState) next() uintptr  { return uintptr(c.regs.Pc) }
func (c childState) stack() uintptr { return uintptr(c.regs.Sp) }
func (c childState) result() int64  { return int64(c.regs.Regs[0]) }

// calling is c about to make a system call of up to four arguments.
func (c childState) calling(nr uintptr, args ...uintptr) childState {
	c.regs.Regs[callRegister] = uint64(nr)
	for i := range args {
		c.regs.Regs[i] = uint64(args[i])
	}
	return c
}
