//go:build !race

#include "textflag.h"

// Folding, for vectors of three widths. Registers, in all functions here:
//
//	AX           the CRC
//	SI, CX       the input that is left: address, length
//	DI           where it is copied to
//	R8           a word
//	V0 ...       remainders
//	V15 or V16   the factors of a fold
//
// A fold replaces each lane v of a remainder by v·x^D + data: the low half of v is
// multiplied by x^(D+63), the high half by x^(D-1) (fold_amd64.go). The main loop folds by
// the width of all remainders together. At its end they are folded into one, then one
// vector of input at a time goes into that, and its lanes are folded into one of 16 bytes.
// The instruction CRC32 reduces those to a CRC and takes the rest of the input, which is
// shorter than a vector.
//
// In Go's assembler the destination comes last.

#define BY2048 ·factors+0(SB)
#define BY1024 ·factors+16(SB)
#define BY512 ·factors+32(SB)
#define BY256 ·factors+64(SB)
#define BY128 ·factors+80(SB)
#define LANES512 ·factors+48(SB)
#define LANES256 ·factors+80(SB)

// REDUCE sets AX to the CRC register after X0. CRC32 multiplies by x^32, as a CRC does.
#define REDUCE \
	XORL    AX, AX     \
	VMOVQ   X0, R8     \
	CRC32Q  R8, AX     \
	VPEXTRQ $1, X0, R8 \
	CRC32Q  R8, AX     \

// REST takes the last CX bytes at SI into AX.
#define REST \
	SUBQ   $8, CX   \
	JL     four     \
word:                   \
	CRC32Q (SI), AX \
	ADDQ   $8, SI   \
	SUBQ   $8, CX   \
	JGE    word     \
four:                   \
	TESTB  $4, CX   \
	JZ     two      \
	CRC32L (SI), AX \
	ADDQ   $4, SI   \
two:                    \
	TESTB  $2, CX   \
	JZ     one      \
	CRC32W (SI), AX \
	ADDQ   $2, SI   \
one:                    \
	TESTB  $1, CX   \
	JZ     none     \
	CRC32B (SI), AX \
none:

// COPYREST is REST, and copies the bytes to DI.
#define COPYREST \
	SUBQ   $8, CX   \
	JL     four     \
word:                   \
	MOVQ   (SI), R8 \
	MOVQ   R8, (DI) \
	CRC32Q R8, AX   \
	ADDQ   $8, SI   \
	ADDQ   $8, DI   \
	SUBQ   $8, CX   \
	JGE    word     \
four:                   \
	TESTB  $4, CX   \
	JZ     two      \
	MOVL   (SI), R8 \
	MOVL   R8, (DI) \
	CRC32L R8, AX   \
	ADDQ   $4, SI   \
	ADDQ   $4, DI   \
two:                    \
	TESTB  $2, CX   \
	JZ     one      \
	MOVW   (SI), R8 \
	MOVW   R8, (DI) \
	CRC32W R8, AX   \
	ADDQ   $2, SI   \
	ADDQ   $2, DI   \
one:                    \
	TESTB  $1, CX   \
	JZ     none     \
	MOVB   (SI), R8 \
	MOVB   R8, (DI) \
	CRC32B R8, AX   \
none:

// 512 bits: 4 remainders of 64 bytes.

#define FOLD512(data, v, t) \
	VPCLMULQDQ $0x00, Z16, v, t  \
	VPCLMULQDQ $0x11, Z16, v, v  \
	VPTERNLOGQ $0x96, data, t, v \

// MERGE512 folds all remainders into Z0, and leaves the factors for one vector.
#define MERGE512 \
	VBROADCASTI32X4 BY1024, Z16 \
	FOLD512(Z2, Z0, Z20)        \
	FOLD512(Z3, Z1, Z21)        \
	VBROADCASTI32X4 BY512, Z16  \
	FOLD512(Z1, Z0, Z20)        \

// JOIN512 folds the lanes of Z0 into X0.
#define JOIN512 \
	VEXTRACTI32X4 $3, Z0, X1         \
	VMOVDQU64     LANES512, Z16      \
	VPCLMULQDQ    $0x00, Z16, Z0, Z2 \
	VPCLMULQDQ    $0x11, Z16, Z0, Z0 \
	VPXORQ        Z2, Z0, Z0         \
	VEXTRACTI64X4 $1, Z0, Y2         \
	VPXOR         Y2, Y0, Y0         \
	VEXTRACTI128  $1, Y0, X2         \
	VPXOR         X2, X0, X0         \
	VPXOR         X1, X0, X0         \

// func update512(crc uint32, p *byte, n int) uint32
TEXT ·update512(SB), NOSPLIT, $0-28
	MOVL crc+0(FP), AX
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), CX
	VMOVD AX, X0
	VPXORQ (SI), Z0, Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VBROADCASTI32X4 BY2048, Z16
	ADDQ $256, SI
	SUBQ $512, CX
	JL   merge

	PCALIGN $64
loop:
	FOLD512(0(SI), Z0, Z20)
	FOLD512(64(SI), Z1, Z21)
	FOLD512(128(SI), Z2, Z22)
	FOLD512(192(SI), Z3, Z23)
	ADDQ $256, SI
	SUBQ $256, CX
	JGE  loop

merge:
	MERGE512
	ADDQ $192, CX
	JL   join

vector:
	FOLD512(0(SI), Z0, Z20)
	ADDQ $64, SI
	SUBQ $64, CX
	JGE  vector

join:
	ADDQ $64, CX
	JOIN512
	REDUCE
	VZEROUPPER
	REST
	MOVL AX, ret+24(FP)
	RET

// func copy512(dst, src *byte, n int, crc uint32) uint32
TEXT ·copy512(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL crc+24(FP), AX
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVDQU64 Z0, (DI)
	VMOVDQU64 Z1, 64(DI)
	VMOVDQU64 Z2, 128(DI)
	VMOVDQU64 Z3, 192(DI)
	VMOVD AX, X20
	VPXORQ Z20, Z0, Z0
	VBROADCASTI32X4 BY2048, Z16
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $512, CX
	JL   merge

	PCALIGN $64
loop:
	VMOVDQU64 (SI), Z24
	VMOVDQU64 64(SI), Z25
	VMOVDQU64 128(SI), Z26
	VMOVDQU64 192(SI), Z27
	VMOVDQU64 Z24, (DI)
	VMOVDQU64 Z25, 64(DI)
	VMOVDQU64 Z26, 128(DI)
	VMOVDQU64 Z27, 192(DI)
	FOLD512(Z24, Z0, Z20)
	FOLD512(Z25, Z1, Z21)
	FOLD512(Z26, Z2, Z22)
	FOLD512(Z27, Z3, Z23)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	JGE  loop

merge:
	MERGE512
	ADDQ $192, CX
	JL   join

vector:
	VMOVDQU64 (SI), Z24
	VMOVDQU64 Z24, (DI)
	FOLD512(Z24, Z0, Z20)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, CX
	JGE  vector

join:
	ADDQ $64, CX
	JOIN512
	REDUCE
	VZEROUPPER
	COPYREST
	MOVL AX, ret+32(FP)
	RET

// 256 bits: 8 remainders of 32 bytes.

#define FOLD256(data, v, t) \
	VPCLMULQDQ $0x00, Y15, v, t \
	VPCLMULQDQ $0x11, Y15, v, v \
	VPXOR      data, t, t       \
	VPXOR      t, v, v          \

// MERGE256 folds all remainders into Y0, and leaves the factors for one vector.
#define MERGE256 \
	VBROADCASTI128 BY1024, Y15 \
	FOLD256(Y4, Y0, Y8)        \
	FOLD256(Y5, Y1, Y9)        \
	FOLD256(Y6, Y2, Y8)        \
	FOLD256(Y7, Y3, Y9)        \
	VBROADCASTI128 BY512, Y15  \
	FOLD256(Y2, Y0, Y8)        \
	FOLD256(Y3, Y1, Y9)        \
	VBROADCASTI128 BY256, Y15  \
	FOLD256(Y1, Y0, Y8)        \

// JOIN256 folds the lanes of Y0 into X0.
#define JOIN256 \
	VEXTRACTI128 $1, Y0, X1         \
	VMOVDQU      LANES256, Y15      \
	VPCLMULQDQ   $0x00, X15, X0, X2 \
	VPCLMULQDQ   $0x11, X15, X0, X0 \
	VPXOR        X2, X0, X0         \
	VPXOR        X1, X0, X0         \

// func update256(crc uint32, p *byte, n int) uint32
TEXT ·update256(SB), NOSPLIT, $0-28
	MOVL crc+0(FP), AX
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), CX
	VMOVD AX, X0
	VPXOR (SI), Y0, Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVDQU 128(SI), Y4
	VMOVDQU 160(SI), Y5
	VMOVDQU 192(SI), Y6
	VMOVDQU 224(SI), Y7
	VBROADCASTI128 BY2048, Y15
	ADDQ $256, SI
	SUBQ $512, CX
	JL   merge

	PCALIGN $64
loop:
	FOLD256(0(SI), Y0, Y8)
	FOLD256(32(SI), Y1, Y9)
	FOLD256(64(SI), Y2, Y8)
	FOLD256(96(SI), Y3, Y9)
	FOLD256(128(SI), Y4, Y8)
	FOLD256(160(SI), Y5, Y9)
	FOLD256(192(SI), Y6, Y8)
	FOLD256(224(SI), Y7, Y9)
	ADDQ $256, SI
	SUBQ $256, CX
	JGE  loop

merge:
	MERGE256
	ADDQ $224, CX
	JL   join

vector:
	FOLD256(0(SI), Y0, Y8)
	ADDQ $32, SI
	SUBQ $32, CX
	JGE  vector

join:
	ADDQ $32, CX
	JOIN256
	REDUCE
	VZEROUPPER
	REST
	MOVL AX, ret+24(FP)
	RET

// func copy256(dst, src *byte, n int, crc uint32) uint32
TEXT ·copy256(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL crc+24(FP), AX
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVDQU 128(SI), Y4
	VMOVDQU 160(SI), Y5
	VMOVDQU 192(SI), Y6
	VMOVDQU 224(SI), Y7
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	VMOVDQU Y4, 128(DI)
	VMOVDQU Y5, 160(DI)
	VMOVDQU Y6, 192(DI)
	VMOVDQU Y7, 224(DI)
	VMOVD AX, X8
	VPXOR Y8, Y0, Y0
	VBROADCASTI128 BY2048, Y15
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $512, CX
	JL   merge

	PCALIGN $64
loop:
	VMOVDQU (SI), Y10
	VMOVDQU 32(SI), Y11
	VMOVDQU 64(SI), Y12
	VMOVDQU 96(SI), Y13
	VMOVDQU Y10, (DI)
	VMOVDQU Y11, 32(DI)
	VMOVDQU Y12, 64(DI)
	VMOVDQU Y13, 96(DI)
	FOLD256(Y10, Y0, Y8)
	FOLD256(Y11, Y1, Y9)
	FOLD256(Y12, Y2, Y8)
	FOLD256(Y13, Y3, Y9)
	VMOVDQU 128(SI), Y10
	VMOVDQU 160(SI), Y11
	VMOVDQU 192(SI), Y12
	VMOVDQU 224(SI), Y13
	VMOVDQU Y10, 128(DI)
	VMOVDQU Y11, 160(DI)
	VMOVDQU Y12, 192(DI)
	VMOVDQU Y13, 224(DI)
	FOLD256(Y10, Y4, Y8)
	FOLD256(Y11, Y5, Y9)
	FOLD256(Y12, Y6, Y8)
	FOLD256(Y13, Y7, Y9)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	JGE  loop

merge:
	MERGE256
	ADDQ $224, CX
	JL   join

vector:
	VMOVDQU (SI), Y10
	VMOVDQU Y10, (DI)
	FOLD256(Y10, Y0, Y8)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $32, CX
	JGE  vector

join:
	ADDQ $32, CX
	JOIN256
	REDUCE
	VZEROUPPER
	COPYREST
	MOVL AX, ret+32(FP)
	RET

// 128 bits: 8 remainders of 16 bytes.

#define FOLD128(data, v, t) \
	VPCLMULQDQ $0x00, X15, v, t \
	VPCLMULQDQ $0x11, X15, v, v \
	VPXOR      data, t, t       \
	VPXOR      t, v, v          \

// MERGE128 folds all remainders into X0, and leaves the factors for one vector.
#define MERGE128 \
	VMOVDQU BY512, X15  \
	FOLD128(X4, X0, X8) \
	FOLD128(X5, X1, X9) \
	FOLD128(X6, X2, X8) \
	FOLD128(X7, X3, X9) \
	VMOVDQU BY256, X15  \
	FOLD128(X2, X0, X8) \
	FOLD128(X3, X1, X9) \
	VMOVDQU BY128, X15  \
	FOLD128(X1, X0, X8) \

// func copy128(dst, src *byte, n int, crc uint32) uint32
TEXT ·copy128(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL crc+24(FP), AX
	VMOVDQU (SI), X0
	VMOVDQU 16(SI), X1
	VMOVDQU 32(SI), X2
	VMOVDQU 48(SI), X3
	VMOVDQU 64(SI), X4
	VMOVDQU 80(SI), X5
	VMOVDQU 96(SI), X6
	VMOVDQU 112(SI), X7
	VMOVDQU X0, (DI)
	VMOVDQU X1, 16(DI)
	VMOVDQU X2, 32(DI)
	VMOVDQU X3, 48(DI)
	VMOVDQU X4, 64(DI)
	VMOVDQU X5, 80(DI)
	VMOVDQU X6, 96(DI)
	VMOVDQU X7, 112(DI)
	VMOVD AX, X8
	VPXOR X8, X0, X0
	VMOVDQU BY1024, X15
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $256, CX
	JL   merge

	PCALIGN $64
loop:
	VMOVDQU (SI), X10
	VMOVDQU 16(SI), X11
	VMOVDQU 32(SI), X12
	VMOVDQU 48(SI), X13
	VMOVDQU X10, (DI)
	VMOVDQU X11, 16(DI)
	VMOVDQU X12, 32(DI)
	VMOVDQU X13, 48(DI)
	FOLD128(X10, X0, X8)
	FOLD128(X11, X1, X9)
	FOLD128(X12, X2, X8)
	FOLD128(X13, X3, X9)
	VMOVDQU 64(SI), X10
	VMOVDQU 80(SI), X11
	VMOVDQU 96(SI), X12
	VMOVDQU 112(SI), X13
	VMOVDQU X10, 64(DI)
	VMOVDQU X11, 80(DI)
	VMOVDQU X12, 96(DI)
	VMOVDQU X13, 112(DI)
	FOLD128(X10, X4, X8)
	FOLD128(X11, X5, X9)
	FOLD128(X12, X6, X8)
	FOLD128(X13, X7, X9)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $128, CX
	JGE  loop

merge:
	MERGE128
	ADDQ $112, CX
	JL   join

vector:
	VMOVDQU (SI), X10
	VMOVDQU X10, (DI)
	FOLD128(X10, X0, X8)
	ADDQ $16, SI
	ADDQ $16, DI
	SUBQ $16, CX
	JGE  vector

join:
	ADDQ $16, CX
	REDUCE
	VZEROUPPER
	COPYREST
	MOVL AX, ret+32(FP)
	RET

// func hasVPCLMULQDQ() bool
TEXT ·hasVPCLMULQDQ(SB), NOSPLIT, $0-1
	XORL AX, AX
	XORL CX, CX
	CPUID
	MOVB $0, ret+0(FP)
	CMPL AX, $7
	JB   done
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $10, CX
	ANDL $1, CX
	MOVB CX, ret+0(FP)

done:
	RET
