#include "textflag.h"

// The program of a watcher, see watcherImage. It starts with nothing but its line
// as descriptor 0. R13 points to memory for one request: a number, six arguments,
// and a place for the answer. R12 is 1 when the end of the line is deadly.
TEXT watcherText<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ SP, R13
	SUBQ $256, R13
	XORL R12, R12
next:
	XORL DI, DI
	MOVQ R13, SI
	MOVL $56, DX
	XORL AX, AX // read
	SYSCALL
	CMPQ AX, $-4 // EINTR
	JEQ  next
	CMPQ AX, $56
	JNE  end
	MOVQ 0(R13), AX
	CMPQ AX, $-1
	JEQ  arm
	MOVQ 8(R13), DI
	MOVQ 16(R13), SI
	MOVQ 24(R13), DX
	MOVQ 32(R13), R10
	MOVQ 40(R13), R8
	MOVQ 48(R13), R9
	SYSCALL
	JMP  answer
arm:
	MOVL $1, R12
	XORL AX, AX
answer:
	MOVQ AX, 64(R13)
	XORL DI, DI
	LEAQ 64(R13), SI
	MOVL $8, DX
	MOVL $1, AX // write
	SYSCALL
	JMP  next
end:
	TESTQ R12, R12
	JZ   exit
	MOVQ $-1, DI
	MOVL $9, SI
	MOVL $62, AX // kill
	SYSCALL
exit:
	MOVL R12, DI
	MOVL $231, AX // exit_group
	SYSCALL
	INT  $3

// func watcherCode() *[512]byte
TEXT ·watcherCode(SB), NOSPLIT, $0-8
	LEAQ watcherText<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
