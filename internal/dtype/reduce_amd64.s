//go:build !race

#include "textflag.h"

// Reductions on vectors of 32 bytes, with the instructions of AVX2, of slices that
// hold at least one vector.
//
// All functions consist of the same loop, EACH, with different steps. A step
// STEP(M, A, B, C) combines the operand at M with A; B and C are scratch, and Y15
// holds a constant if a function sets one before its loop.
//
// The loop begins where a vector of inout is aligned, because a store across two
// cache lines takes twice as long, and ends with the last whole vector. The bytes
// before and after it are covered by the first and the last 32 bytes of the slice,
// unaligned: they are combined before the loop and stored after it. Elements that
// the loop has processed too are set to the same value again.
//
// In Go's assembler the destination comes last, and the first source of the
// processor's manual right before it: VPCMPGTQ B, A, C sets C where A > B.

#define EACH(STEP) \
	MOVQ inout+0(FP), DI                 \
	MOVQ in+8(FP), SI                    \
	MOVQ bytes+16(FP), CX                \
	MOVQ DI, R8                          \
	LEAQ -32(DI)(CX*1), R9               \
	VMOVDQU (R8), Y14                    \
	STEP((SI), Y14, Y4, Y8)              \
	VMOVDQU (R9), Y13                    \
	STEP(-32(SI)(CX*1), Y13, Y5, Y9)     \
	MOVQ DI, AX                          \
	NEGQ AX                              \
	ANDQ $31, AX                         \
	ADDQ AX, DI                          \
	ADDQ AX, SI                          \
	SUBQ AX, CX                          \
	SUBQ $128, CX                        \
	JLT  rest                            \
four: \
	VMOVDQU (DI), Y0                     \
	VMOVDQU 32(DI), Y1                   \
	VMOVDQU 64(DI), Y2                   \
	VMOVDQU 96(DI), Y3                   \
	STEP((SI), Y0, Y4, Y8)               \
	STEP(32(SI), Y1, Y5, Y9)             \
	STEP(64(SI), Y2, Y6, Y10)            \
	STEP(96(SI), Y3, Y7, Y11)            \
	VMOVDQU Y0, (DI)                     \
	VMOVDQU Y1, 32(DI)                   \
	VMOVDQU Y2, 64(DI)                   \
	VMOVDQU Y3, 96(DI)                   \
	ADDQ $128, DI                        \
	ADDQ $128, SI                        \
	SUBQ $128, CX                        \
	JGE  four                            \
rest: \
	ADDQ $96, CX                         \
	JLT  done                            \
one: \
	VMOVDQU (DI), Y0                     \
	STEP((SI), Y0, Y4, Y8)               \
	VMOVDQU Y0, (DI)                     \
	ADDQ $32, DI                         \
	ADDQ $32, SI                         \
	SUBQ $32, CX                         \
	JGE  one                             \
done: \
	VMOVDQU Y14, (R8)                    \
	VMOVDQU Y13, (R9)                    \
	VZEROUPPER                           \
	RET

// Constants for Y15: all bits, and from them the highest, the lowest or the upper
// half of each element.
#define ALL_BITS VPCMPEQD Y15, Y15, Y15

// Sums. Integers wrap around, so the sign makes no difference, and a complex number
// is two real ones.

#define ADD_8(M, A, B, C) VPADDB M, A, A
#define ADD_16(M, A, B, C) VPADDW M, A, A
#define ADD_32(M, A, B, C) VPADDD M, A, A
#define ADD_64(M, A, B, C) VPADDQ M, A, A
#define ADD_FLOAT32(M, A, B, C) VADDPS M, A, A
#define ADD_FLOAT64(M, A, B, C) VADDPD M, A, A

// func add8(inout, in *byte, bytes int)
TEXT ·add8(SB), NOSPLIT, $0-24
	EACH(ADD_8)

// func add16(inout, in *byte, bytes int)
TEXT ·add16(SB), NOSPLIT, $0-24
	EACH(ADD_16)

// func add32(inout, in *byte, bytes int)
TEXT ·add32(SB), NOSPLIT, $0-24
	EACH(ADD_32)

// func add64(inout, in *byte, bytes int)
TEXT ·add64(SB), NOSPLIT, $0-24
	EACH(ADD_64)

// func addFloat32(inout, in *byte, bytes int)
TEXT ·addFloat32(SB), NOSPLIT, $0-24
	EACH(ADD_FLOAT32)

// func addFloat64(inout, in *byte, bytes int)
TEXT ·addFloat64(SB), NOSPLIT, $0-24
	EACH(ADD_FLOAT64)

// Products. There is no instruction for bytes and for 64 bits.

// The bytes at odd offsets are multiplied in the upper half of 16 bits, those at even
// offsets in the lower half, where Y15 masks them.
#define MULTIPLY_8(M, A, B, C) \
	VMOVDQU  M, B      \
	VPANDN   B, Y15, C \
	VPMULLW  B, A, B   \
	VPSRLW   $8, A, A  \
	VPMULLW  C, A, A   \
	VPAND    Y15, B, B \
	VPOR     B, A, A

#define MULTIPLY_16(M, A, B, C) VPMULLW M, A, A
#define MULTIPLY_32(M, A, B, C) VPMULLD M, A, A

// With halves of 32 bits: low·low, and above it the lower 32 bits of both
// low·high. B with its halves exchanged gives these two next to each other; one is
// shifted up; of the other Y15 keeps the upper half.
#define MULTIPLY_64(M, A, B, C) \
	VMOVDQU  M, B         \
	VPSHUFD  $0xB1, B, C  \
	VPMULLD  A, C, C      \
	VPMULUDQ B, A, A      \
	VPSLLQ   $32, C, B    \
	VPAND    Y15, C, C    \
	VPADDQ   B, A, A      \
	VPADDQ   C, A, A

#define MULTIPLY_FLOAT32(M, A, B, C) VMULPS M, A, A
#define MULTIPLY_FLOAT64(M, A, B, C) VMULPD M, A, A

// func multiply8(inout, in *byte, bytes int)
TEXT ·multiply8(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSRLW $8, Y15, Y15
	EACH(MULTIPLY_8)

// func multiply16(inout, in *byte, bytes int)
TEXT ·multiply16(SB), NOSPLIT, $0-24
	EACH(MULTIPLY_16)

// func multiply32(inout, in *byte, bytes int)
TEXT ·multiply32(SB), NOSPLIT, $0-24
	EACH(MULTIPLY_32)

// func multiply64(inout, in *byte, bytes int)
TEXT ·multiply64(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSLLQ $32, Y15, Y15
	EACH(MULTIPLY_64)

// func multiplyFloat32(inout, in *byte, bytes int)
TEXT ·multiplyFloat32(SB), NOSPLIT, $0-24
	EACH(MULTIPLY_FLOAT32)

// func multiplyFloat64(inout, in *byte, bytes int)
TEXT ·multiplyFloat64(SB), NOSPLIT, $0-24
	EACH(MULTIPLY_FLOAT64)

// Minimum and maximum of integers. There is no instruction for 64 bits, and its
// comparison is signed: unsigned numbers have their highest bit flipped before and
// after.

#define MIN_INT8(M, A, B, C) VPMINSB M, A, A
#define MIN_INT16(M, A, B, C) VPMINSW M, A, A
#define MIN_INT32(M, A, B, C) VPMINSD M, A, A
#define MIN_UINT8(M, A, B, C) VPMINUB M, A, A
#define MIN_UINT16(M, A, B, C) VPMINUW M, A, A
#define MIN_UINT32(M, A, B, C) VPMINUD M, A, A
#define MAX_INT8(M, A, B, C) VPMAXSB M, A, A
#define MAX_INT16(M, A, B, C) VPMAXSW M, A, A
#define MAX_INT32(M, A, B, C) VPMAXSD M, A, A
#define MAX_UINT8(M, A, B, C) VPMAXUB M, A, A
#define MAX_UINT16(M, A, B, C) VPMAXUW M, A, A
#define MAX_UINT32(M, A, B, C) VPMAXUD M, A, A

#define MIN_INT64(M, A, B, C) \
	VMOVDQU   M, B       \
	VPCMPGTQ  B, A, C    \
	VBLENDVPD C, B, A, A

#define MAX_INT64(M, A, B, C) \
	VMOVDQU   M, B       \
	VPCMPGTQ  A, B, C    \
	VBLENDVPD C, B, A, A

#define MIN_UINT64(M, A, B, C) \
	VPXOR     M, Y15, B  \
	VPXOR     A, Y15, A  \
	VPCMPGTQ  B, A, C    \
	VBLENDVPD C, B, A, A \
	VPXOR     A, Y15, A

#define MAX_UINT64(M, A, B, C) \
	VPXOR     M, Y15, B  \
	VPXOR     A, Y15, A  \
	VPCMPGTQ  A, B, C    \
	VBLENDVPD C, B, A, A \
	VPXOR     A, Y15, A

// func minInt8(inout, in *byte, bytes int)
TEXT ·minInt8(SB), NOSPLIT, $0-24
	EACH(MIN_INT8)

// func minInt16(inout, in *byte, bytes int)
TEXT ·minInt16(SB), NOSPLIT, $0-24
	EACH(MIN_INT16)

// func minInt32(inout, in *byte, bytes int)
TEXT ·minInt32(SB), NOSPLIT, $0-24
	EACH(MIN_INT32)

// func minInt64(inout, in *byte, bytes int)
TEXT ·minInt64(SB), NOSPLIT, $0-24
	EACH(MIN_INT64)

// func minUint8(inout, in *byte, bytes int)
TEXT ·minUint8(SB), NOSPLIT, $0-24
	EACH(MIN_UINT8)

// func minUint16(inout, in *byte, bytes int)
TEXT ·minUint16(SB), NOSPLIT, $0-24
	EACH(MIN_UINT16)

// func minUint32(inout, in *byte, bytes int)
TEXT ·minUint32(SB), NOSPLIT, $0-24
	EACH(MIN_UINT32)

// func minUint64(inout, in *byte, bytes int)
TEXT ·minUint64(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSLLQ $63, Y15, Y15
	EACH(MIN_UINT64)

// func maxInt8(inout, in *byte, bytes int)
TEXT ·maxInt8(SB), NOSPLIT, $0-24
	EACH(MAX_INT8)

// func maxInt16(inout, in *byte, bytes int)
TEXT ·maxInt16(SB), NOSPLIT, $0-24
	EACH(MAX_INT16)

// func maxInt32(inout, in *byte, bytes int)
TEXT ·maxInt32(SB), NOSPLIT, $0-24
	EACH(MAX_INT32)

// func maxInt64(inout, in *byte, bytes int)
TEXT ·maxInt64(SB), NOSPLIT, $0-24
	EACH(MAX_INT64)

// func maxUint8(inout, in *byte, bytes int)
TEXT ·maxUint8(SB), NOSPLIT, $0-24
	EACH(MAX_UINT8)

// func maxUint16(inout, in *byte, bytes int)
TEXT ·maxUint16(SB), NOSPLIT, $0-24
	EACH(MAX_UINT16)

// func maxUint32(inout, in *byte, bytes int)
TEXT ·maxUint32(SB), NOSPLIT, $0-24
	EACH(MAX_UINT32)

// func maxUint64(inout, in *byte, bytes int)
TEXT ·maxUint64(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSLLQ $63, Y15, Y15
	EACH(MAX_UINT64)

// Minimum and maximum of real numbers. The instruction returns its second operand if
// one is a NaN or both are 0, whatever their signs. It is therefore executed with the
// operands in both orders: the two results differ only in that case, and are the two
// operands. Their bits combined are a NaN if one of them is. The sign of a 0 is then
// correct: for the minimum, negative if one is (or); for the maximum, if both are (and).

#define MIN_FLOAT32(M, A, B, C) \
	VMOVUPS M, B    \
	VMINPS  B, A, C \
	VMINPS  A, B, B \
	VORPS   B, C, A

#define MIN_FLOAT64(M, A, B, C) \
	VMOVUPD M, B    \
	VMINPD  B, A, C \
	VMINPD  A, B, B \
	VORPD   B, C, A

#define MAX_FLOAT32(M, A, B, C) \
	VMOVUPS M, B      \
	VMAXPS  B, A, C   \
	VMAXPS  A, B, B   \
	VANDPS  B, C, A   \
	VORPS   B, C, C   \
	VANDNPS C, Y15, C \
	VORPS   C, A, A

#define MAX_FLOAT64(M, A, B, C) \
	VMOVUPD M, B      \
	VMAXPD  B, A, C   \
	VMAXPD  A, B, B   \
	VANDPD  B, C, A   \
	VORPD   B, C, C   \
	VANDNPD C, Y15, C \
	VORPD   C, A, A

// func minFloat32(inout, in *byte, bytes int)
TEXT ·minFloat32(SB), NOSPLIT, $0-24
	EACH(MIN_FLOAT32)

// func minFloat64(inout, in *byte, bytes int)
TEXT ·minFloat64(SB), NOSPLIT, $0-24
	EACH(MIN_FLOAT64)

// func maxFloat32(inout, in *byte, bytes int)
TEXT ·maxFloat32(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSLLD $31, Y15, Y15
	EACH(MAX_FLOAT32)

// func maxFloat64(inout, in *byte, bytes int)
TEXT ·maxFloat64(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSLLQ $63, Y15, Y15
	EACH(MAX_FLOAT64)

// Bits, for integers of any size.

#define BIT_AND(M, A, B, C) VPAND M, A, A
#define BIT_OR(M, A, B, C) VPOR M, A, A
#define BIT_XOR(M, A, B, C) VPXOR M, A, A

// func bitAnd(inout, in *byte, bytes int)
TEXT ·bitAnd(SB), NOSPLIT, $0-24
	EACH(BIT_AND)

// func bitOr(inout, in *byte, bytes int)
TEXT ·bitOr(SB), NOSPLIT, $0-24
	EACH(BIT_OR)

// func bitXor(inout, in *byte, bytes int)
TEXT ·bitXor(SB), NOSPLIT, $0-24
	EACH(BIT_XOR)

// Logical operations: a comparison with 0 finds the elements that are false, and Y15
// makes a 1 of those that shall be true. Y12 is 0.

#define LOGICAL_AND_8(M, A, B, C) \
	VMOVDQU  M, B      \
	VPCMPEQB Y12, A, A \
	VPCMPEQB Y12, B, B \
	VPOR     B, A, A   \
	VPANDN   Y15, A, A

#define LOGICAL_OR_8(M, A, B, C) \
	VMOVDQU  M, B      \
	VPCMPEQB Y12, A, A \
	VPCMPEQB Y12, B, B \
	VPAND    B, A, A   \
	VPANDN   Y15, A, A

#define LOGICAL_XOR_8(M, A, B, C) \
	VMOVDQU  M, B      \
	VPCMPEQB Y12, A, A \
	VPCMPEQB Y12, B, B \
	VPXOR    B, A, A   \
	VPAND    Y15, A, A

#define LOGICAL_AND_16(M, A, B, C) \
	VMOVDQU  M, B      \
	VPCMPEQW Y12, A, A \
	VPCMPEQW Y12, B, B \
	VPOR     B, A, A   \
	VPANDN   Y15, A, A

#define LOGICAL_OR_16(M, A, B, C) \
	VMOVDQU  M, B      \
	VPCMPEQW Y12, A, A \
	VPCMPEQW Y12, B, B \
	VPAND    B, A, A   \
	VPANDN   Y15, A, A

#define LOGICAL_XOR_16(M, A, B, C) \
	VMOVDQU  M, B      \
	VPCMPEQW Y12, A, A \
	VPCMPEQW Y12, B, B \
	VPXOR    B, A, A   \
	VPAND    Y15, A, A

#define LOGICAL_AND_32(M, A, B, C) \
	VMOVDQU  M, B      \
	VPCMPEQD Y12, A, A \
	VPCMPEQD Y12, B, B \
	VPOR     B, A, A   \
	VPANDN   Y15, A, A

#define LOGICAL_OR_32(M, A, B, C) \
	VMOVDQU  M, B      \
	VPCMPEQD Y12, A, A \
	VPCMPEQD Y12, B, B \
	VPAND    B, A, A   \
	VPANDN   Y15, A, A

#define LOGICAL_XOR_32(M, A, B, C) \
	VMOVDQU  M, B      \
	VPCMPEQD Y12, A, A \
	VPCMPEQD Y12, B, B \
	VPXOR    B, A, A   \
	VPAND    Y15, A, A

#define LOGICAL_AND_64(M, A, B, C) \
	VMOVDQU  M, B      \
	VPCMPEQQ Y12, A, A \
	VPCMPEQQ Y12, B, B \
	VPOR     B, A, A   \
	VPANDN   Y15, A, A

#define LOGICAL_OR_64(M, A, B, C) \
	VMOVDQU  M, B      \
	VPCMPEQQ Y12, A, A \
	VPCMPEQQ Y12, B, B \
	VPAND    B, A, A   \
	VPANDN   Y15, A, A

#define LOGICAL_XOR_64(M, A, B, C) \
	VMOVDQU  M, B      \
	VPCMPEQQ Y12, A, A \
	VPCMPEQQ Y12, B, B \
	VPXOR    B, A, A   \
	VPAND    Y15, A, A

// func logicalAnd8(inout, in *byte, bytes int)
TEXT ·logicalAnd8(SB), NOSPLIT, $0-24
	ALL_BITS
	VPABSB Y15, Y15
	VPXOR Y12, Y12, Y12
	EACH(LOGICAL_AND_8)

// func logicalOr8(inout, in *byte, bytes int)
TEXT ·logicalOr8(SB), NOSPLIT, $0-24
	ALL_BITS
	VPABSB Y15, Y15
	VPXOR Y12, Y12, Y12
	EACH(LOGICAL_OR_8)

// func logicalXor8(inout, in *byte, bytes int)
TEXT ·logicalXor8(SB), NOSPLIT, $0-24
	ALL_BITS
	VPABSB Y15, Y15
	VPXOR Y12, Y12, Y12
	EACH(LOGICAL_XOR_8)

// func logicalAnd16(inout, in *byte, bytes int)
TEXT ·logicalAnd16(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSRLW $15, Y15, Y15
	VPXOR Y12, Y12, Y12
	EACH(LOGICAL_AND_16)

// func logicalOr16(inout, in *byte, bytes int)
TEXT ·logicalOr16(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSRLW $15, Y15, Y15
	VPXOR Y12, Y12, Y12
	EACH(LOGICAL_OR_16)

// func logicalXor16(inout, in *byte, bytes int)
TEXT ·logicalXor16(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSRLW $15, Y15, Y15
	VPXOR Y12, Y12, Y12
	EACH(LOGICAL_XOR_16)

// func logicalAnd32(inout, in *byte, bytes int)
TEXT ·logicalAnd32(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSRLD $31, Y15, Y15
	VPXOR Y12, Y12, Y12
	EACH(LOGICAL_AND_32)

// func logicalOr32(inout, in *byte, bytes int)
TEXT ·logicalOr32(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSRLD $31, Y15, Y15
	VPXOR Y12, Y12, Y12
	EACH(LOGICAL_OR_32)

// func logicalXor32(inout, in *byte, bytes int)
TEXT ·logicalXor32(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSRLD $31, Y15, Y15
	VPXOR Y12, Y12, Y12
	EACH(LOGICAL_XOR_32)

// func logicalAnd64(inout, in *byte, bytes int)
TEXT ·logicalAnd64(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSRLQ $63, Y15, Y15
	VPXOR Y12, Y12, Y12
	EACH(LOGICAL_AND_64)

// func logicalOr64(inout, in *byte, bytes int)
TEXT ·logicalOr64(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSRLQ $63, Y15, Y15
	VPXOR Y12, Y12, Y12
	EACH(LOGICAL_OR_64)

// func logicalXor64(inout, in *byte, bytes int)
TEXT ·logicalXor64(SB), NOSPLIT, $0-24
	ALL_BITS
	VPSRLQ $63, Y15, Y15
	VPXOR Y12, Y12, Y12
	EACH(LOGICAL_XOR_64)

// func hasAVX2() bool
TEXT ·hasAVX2(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	XORL AX, AX
	CPUID
	CMPL AX, $7
	JLT  no

	// AVX, and an operating system that saves what it is told to (OSXSAVE).
	MOVL $1, AX
	XORL CX, CX
	CPUID
	ANDL $(1<<28 | 1<<27), CX
	CMPL CX, $(1<<28 | 1<<27)
	JNE  no

	// It is told to save the vector registers, both halves.
	XORL CX, CX
	XGETBV
	ANDL $6, AX
	CMPL AX, $6
	JNE  no

	MOVL  $7, AX
	XORL  CX, CX
	CPUID
	SHRL  $5, BX
	ANDL  $1, BX
	MOVB  BX, ret+0(FP)

no:
	RET
