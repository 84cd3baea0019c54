//go:build !race

#include "textflag.h"

// func hasFastStrings() bool
TEXT ·hasFastStrings(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	XORL AX, AX
	CPUID
	CMPL AX, $7
	JB   done
	CMPL BX, $0x756e6547 // GenuineIntel
	JNE  done
	CMPL DX, $0x49656e69
	JNE  done
	CMPL CX, $0x6c65746e
	JNE  done
	MOVL $7, AX
	XORL CX, CX
	CPUID
	BTL  $9, BX // ERMS
	SETCS ret+0(FP)

done:
	RET

// func moveString(to, from *byte, n int)
TEXT ·moveString(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ n+16(FP), CX
	REP; MOVSB
	RET
