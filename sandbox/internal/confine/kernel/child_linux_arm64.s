#include "textflag.h"

// func CloneRun(flags uintptr, first *Call) (pid int)
//
// The child may share the memory of its parent, stack included: until it ends it
// touches registers and call records only. R19 points to the record at work.
TEXT ·CloneRun(SB), NOSPLIT, $0-24
	MOVD flags+0(FP), R0
	MOVD first+8(FP), R19
	MOVD ZR, R1
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $220, R8 // clone
	SVC
	CBZ  R0, next
	MOVD R0, pid+16(FP)
	RET
next:
	CBZ  R19, done
	MOVD 0(R19), R8
	MOVD 8(R19), R0
	MOVD 16(R19), R1
	MOVD 24(R19), R2
	MOVD 32(R19), R3
	MOVD 40(R19), R4
	MOVD 48(R19), R5
	SVC
	MOVD R0, 56(R19)
	CMP  $0, R0
	BLE  failed
	MOVD 64(R19), R19
	B    next
failed:
	CBZ  R0, orElse
	MOVD 80(R19), R1
	CBZ  R1, orElse
	CMP  $1, R1
	BEQ  done
	MOVD R1, R19
	B    next
orElse:
	MOVD 72(R19), R19
	B    next
done:
	MOVD $94, R8 // exit_group
	MOVD ZR, R0
	SVC
	BRK
