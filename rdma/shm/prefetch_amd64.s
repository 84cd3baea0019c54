#include "textflag.h"

// func prefetchWrite(p *byte, n int)
TEXT ·prefetchWrite(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
	ADDQ AX, CX

line:
	CMPQ AX, CX
	JAE  done
	BYTE $0x0F; BYTE $0x0D; BYTE $0x08 // PREFETCHW (AX), which the assembler does not know
	ADDQ $64, AX
	JMP  line

done:
	RET

// func prefetchRead(p *byte, n int)
TEXT ·prefetchRead(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
	ADDQ AX, CX

line:
	CMPQ AX, CX
	JAE  done
	PREFETCHT1 (AX)
	ADDQ $64, AX
	JMP  line

done:
	RET

// func demote(p *byte, n int)
TEXT ·demote(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
	ADDQ AX, CX

line:
	CMPQ AX, CX
	JAE  done
	BYTE $0x0F; BYTE $0x1C; BYTE $0x00 // CLDEMOTE (AX); no operation where it is unknown
	ADDQ $64, AX
	JMP  line

done:
	RET
