//go:build linux && !race

#include "textflag.h"

// func Call(fn, a, b, c, top uintptr) uintptr
//
// C preserves RBX, RBP and R12 to R15, so the stack pointer is saved in RBX, and g in R14
// is preserved. The stack must be aligned to 16 bytes at a call.
TEXT ·Call(SB), NOSPLIT, $0-48
	MOVQ fn+0(FP), AX
	MOVQ a+8(FP), DI
	MOVQ b+16(FP), SI
	MOVQ c+24(FP), DX
	MOVQ top+32(FP), CX
	MOVQ SP, BX
	MOVQ CX, SP
	ANDQ $~15, SP
	CALL AX
	MOVQ BX, SP
	MOVQ AX, ret+40(FP)
	RET
