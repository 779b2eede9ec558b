#include "textflag.h"

// func CloneRun(flags uintptr, first *Call) (pid int)
//
// The child may share the memory of its parent, stack included: until it ends it
// touches registers and call records only. R12 points to the record at work.
TEXT ·CloneRun(SB), NOSPLIT, $0-24
	MOVQ flags+0(FP), DI
	MOVQ first+8(FP), R12
	XORL SI, SI
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVL $56, AX // clone
	SYSCALL
	TESTQ AX, AX
	JZ   next
	MOVQ AX, pid+16(FP)
	RET
next:
	TESTQ R12, R12
	JZ   done
	MOVQ 0(R12), AX
	MOVQ 8(R12), DI
	MOVQ 16(R12), SI
	MOVQ 24(R12), DX
	MOVQ 32(R12), R10
	MOVQ 40(R12), R8
	MOVQ 48(R12), R9
	SYSCALL
	MOVQ AX, 56(R12)
	TESTQ AX, AX
	JLE  failed
	MOVQ 64(R12), R12
	JMP  next
failed:
	JEQ  orElse
	MOVQ 80(R12), AX
	TESTQ AX, AX
	JZ   orElse
	CMPQ AX, $1
	JEQ  done
	MOVQ AX, R12
	JMP  next
orElse:
	MOVQ 72(R12), R12
	JMP  next
done:
	MOVL $231, AX // exit_group
	XORL DI, DI
	SYSCALL
	INT  $3
