//go:build linux && !race

#include "textflag.h"

// On amd64 stores become visible in program order and loads are made in program
// order, so plain moves are enough for entering and leaving. What they do not
// order is the store to inside before the load of bias: see lock.go.

// func takeBiased(s *spinLock) bool
TEXT ·takeBiased(SB), NOSPLIT, $0-9
	MOVQ s+0(FP), AX
	MOVQ (TLS), CX
	CMPQ 0(AX), CX
	JNE  no
	MOVQ $1, 8(AX)
	CMPQ 0(AX), CX
	JNE  back
	MOVQ $1, 16(AX)
	MOVB $1, ret+8(FP)
	RET

back:
	MOVQ $0, 8(AX)

no:
	MOVB $0, ret+8(FP)
	RET

// func giveBiased(s *spinLock) bool
TEXT ·giveBiased(SB), NOSPLIT, $0-9
	MOVQ s+0(FP), AX
	CMPQ 16(AX), $0
	JEQ  ordinary
	MOVQ $0, 16(AX)
	MOVQ $0, 8(AX)
	MOVB $1, ret+8(FP)
	RET

ordinary:
	MOVB $0, ret+8(FP)
	RET

// func goroutine() uintptr
TEXT ·goroutine(SB), NOSPLIT, $0-8
	MOVQ (TLS), AX
	MOVQ AX, ret+0(FP)
	RET
