//go:build !race

package crc32c

import "golang.org/x/sys/cpu"

// Folding. The CRC of a message M is the remainder of M(x)·x^32 by P(x), so M may be
// replaced by any shorter polynomial with the same remainder. Where a 128-bit lane v of the
// message is D bits before another one, v·x^D mod P is added to that one instead: two
// carry-less multiplications of 64 bits, which are independent of those of other lanes.
// In the order of CRC-32C, in which the first bit of a message has the highest power, the
// low half of v has the factor x^64 in addition, and the product of two reflected numbers
// is reflected and one bit short, hence the powers D+63 and D-1.
//
// hash/crc32 uses the instruction CRC32 for three parts at once: 8 bytes a cycle, and so
// does folding in vectors of 128 bits. Those are used only for Copy, where one pass is
// saved. The race detector observes only Go code, so it is built without folding.

const (
	vectors128 width = 128 // AVX, PCLMULQDQ
	vectors256 width = 256 // AVX2, VPCLMULQDQ
	vectors512 width = 512 // AVX-512, VPCLMULQDQ

	updateFrom = vectors256
	copyFrom   = vectors128
)

// best is the widest that this processor and kernel support. On a Xeon of the fifth
// generation, wide vectors cost nothing where few are used (256 bytes between scalar code
// of 1 µs and of 20 µs).
var best = widest()

func widest() width {
	x := &cpu.X86
	switch {
	case !x.HasSSE42 || !x.HasAVX || !x.HasPCLMULQDQ:
		return plain
	case x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VPCLMULQDQ:
		return vectors512
	case x.HasAVX2 && hasVPCLMULQDQ():
		return vectors256
	}
	return vectors128
}

// factors has x^(D+63) mod P and x^(D-1) mod P for each distance D, reflected.
var factors = [...]uint64{
	0xe9a5d8be_00000000, 0x1426a815_00000000, // 2048
	0x6577b245_00000000, 0x7417153f_00000000, // 1024
	0x1c19243b_00000000, 0x75bba45b_00000000, // 512
	0xa46ef4aa_00000000, 0x6051243f_00000000, // 384
	0x33ccbbbc_00000000, 0xa2158b34_00000000, // 256
	0x3743f7bd_00000000, 0x3171d430_00000000, // 128
	0, 0, // the last lane of a vector
}

// fold is crc32.Update without the inversions before and after it.
func (w width) fold(crc uint32, p []byte) uint32 {
	if w == vectors512 {
		return update512(crc, &p[0], len(p))
	}
	return update256(crc, &p[0], len(p))
}

// foldCopy is fold, and copies src to dst, which has the same length.
func (w width) foldCopy(dst, src []byte, crc uint32) uint32 {
	switch w {
	case vectors512:
		return copy512(&dst[0], &src[0], len(src), crc)
	case vectors256:
		return copy256(&dst[0], &src[0], len(src), crc)
	default:
		return copy128(&dst[0], &src[0], len(src), crc)
	}
}

// hasVPCLMULQDQ reports the instruction for vectors of 256 bits: package cpu reports it
// only together with AVX-512.
func hasVPCLMULQDQ() bool

//go:noescape
func update512(crc uint32, p *byte, n int) uint32

//go:noescape
func copy512(dst, src *byte, n int, crc uint32) uint32

//go:noescape
func update256(crc uint32, p *byte, n int) uint32

//go:noescape
func copy256(dst, src *byte, n int, crc uint32) uint32

//go:noescape
func copy128(dst, src *byte, n int, crc uint32) uint32
