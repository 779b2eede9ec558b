#include "textflag.h"

// The program of a watcher, see watcherImage. It starts with nothing but its line
// as descriptor 0. R19 points to memory for one request: a number, six arguments,
// and a place for the answer. R20 is 1 when the end of the line is deadly.
TEXT watcherText<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD RSP, R19
	SUB  $256, R19
	MOVD $0, R20
next:
	MOVD $0, R0
	MOVD R19, R1
	MOVD $56, R2
	MOVD $63, R8 // read
	SVC
	CMN  $4, R0 // EINTR
	BEQ  next
	CMP  $56, R0
	BNE  end
	MOVD 0(R19), R8
	CMN  $1, R8
	BEQ  arm
	MOVD 8(R19), R0
	MOVD 16(R19), R1
	MOVD 24(R19), R2
	MOVD 32(R19), R3
	MOVD 40(R19), R4
	MOVD 48(R19), R5
	SVC
	B    answer
arm:
	MOVD $1, R20
	MOVD $0, R0
answer:
	MOVD R0, 64(R19)
	MOVD $0, R0
	ADD  $64, R19, R1
	MOVD $8, R2
	MOVD $64, R8 // write
	SVC
	B    next
end:
	CBZ  R20, exit
	MOVD $-1, R0
	MOVD $9, R1
	MOVD $129, R8 // kill
	SVC
exit:
	MOVD R20, R0
	MOVD $94, R8 // exit_group
	SVC
	BRK

// func watcherCode() *[512]byte
TEXT ·watcherCode(SB), NOSPLIT, $0-8
	MOVD $watcherText<>(SB), R0
	MOVD R0, ret+0(FP)
	RET
