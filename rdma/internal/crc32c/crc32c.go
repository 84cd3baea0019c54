package crc32c

import "hash/crc32"

var table = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC of p.
func Checksum(p []byte) uint32 { return best.update(0, p) }

// Update returns the CRC of bytes with the given CRC followed by p.
func Update(crc uint32, p []byte) uint32 { return best.update(crc, p) }

// Copy copies src to the front of dst, which must not be shorter, and returns what Update
// returns for the bytes that are now in dst: it reads each byte of src once, so that the
// result suits the copy even if src changes meanwhile. dst and src may be the same memory,
// and otherwise must not overlap.
func Copy(dst, src []byte, crc uint32) uint32 { return best.copy(dst, src, crc) }

// width is the length in bits of the vectors that are folded.
type width int

const plain width = 0 // no folding: hash/crc32

// Vector instructions take foldFrom bytes at least: below that hash/crc32 is as fast. The
// bytes of one call are limited, because the garbage collector cannot interrupt it: a call
// takes at most twice the limit, so that what is left is never shorter than foldFrom.
const (
	foldFrom  = 256
	foldLimit = 128 << 10
)

func (w width) update(crc uint32, p []byte) uint32 {
	if len(p) < foldFrom || w < updateFrom {
		return crc32.Update(crc, table, p)
	}
	crc = ^crc
	for len(p) > 2*foldLimit {
		crc = w.fold(crc, p[:foldLimit])
		p = p[foldLimit:]
	}
	return ^w.fold(crc, p)
}

func (w width) copy(dst, src []byte, crc uint32) uint32 {
	dst = dst[:len(src)]
	if len(src) < foldFrom || w < copyFrom {
		return copyPlain(dst, src, crc)
	}
	crc = ^crc
	for len(src) > 2*foldLimit {
		crc = w.foldCopy(dst, src[:foldLimit], crc)
		dst, src = dst[foldLimit:], src[foldLimit:]
	}
	return ^w.foldCopy(dst, src, crc)
}

// copyPlain copies as much at a time as is still in the first-level cache when its CRC is
// computed.
func copyPlain(dst, src []byte, crc uint32) uint32 {
	const atOnce = 8 << 10
	for len(src) > atOnce {
		copy(dst, src[:atOnce])
		crc = crc32.Update(crc, table, dst[:atOnce])
		dst, src = dst[atOnce:], src[atOnce:]
	}
	copy(dst, src)
	return crc32.Update(crc, table, dst[:len(src)])
}
