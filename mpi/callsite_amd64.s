#include "textflag.h"

// func framePCs(pcs *[siteDepth]uintptr) int
//
// The return address is one word above the saved frame pointer. The runtime does not
// preempt assembly, so the stack does not move meanwhile.
TEXT ·framePCs(SB), NOSPLIT, $0-16
	MOVQ pcs+0(FP), DI
	MOVQ BP, AX
	XORQ CX, CX
next:
	TESTQ AX, AX
	JZ   done
	MOVQ 8(AX), DX
	MOVQ DX, (DI)(CX*8)
	MOVQ (AX), AX
	INCQ CX
	CMPQ CX, $12
	JLT  next
done:
	MOVQ CX, ret+8(FP)
	RET
