package shm

import "math/bits"

// Blocks hold messages of the shared queue that do not fit a cell. A sender claims one in
// the receiver's segment, and the receiver frees it when the view of the message ends. The
// lowest free block is used, so that few pages are ever touched.

// noBlock in a cell's meta: the message is in the cell.
const noBlock = 255

// largeBlock is added to the number of a large block.
const largeBlock = 64

// claimBit sets the lowest clear bit among the first n and returns its index, or -1 if all
// are set.
func claimBit(used *word, n uint32) int {
	for {
		old := used.Load()
		i := bits.TrailingZeros64(^old)
		if i >= int(n) {
			return -1
		}
		if used.CompareAndSwap(old, old|1<<i) {
			return i
		}
	}
}

func clearBit(used *word, i int) {
	for {
		old := used.Load()
		if used.CompareAndSwap(old, old&^(1<<i)) {
			return
		}
	}
}

// claimBlock claims a block for n bytes and returns its number and memory. A small message
// uses a large block rather than wait for a small one.
func (s *segment) claimBlock(n int) (int, []byte) {
	if n <= smallBlockBytes {
		if i := claimBit(&s.head.smallUsed, s.geo.smallBlocks); i >= 0 {
			return i, s.block(i)
		}
	}
	if i := claimBit(&s.head.largeUsed, s.geo.largeBlocks); i >= 0 {
		return i + largeBlock, s.block(i + largeBlock)
	}
	return -1, nil
}

// hasBlock reports whether block i exists.
func (s *segment) hasBlock(i int) bool {
	if i >= largeBlock {
		return i-largeBlock < int(s.geo.largeBlocks)
	}
	return i < int(s.geo.smallBlocks)
}

func (s *segment) block(i int) []byte {
	if s.heap {
		if i >= largeBlock {
			return s.heapBlock(int(s.geo.smallBlocks)+i-largeBlock, largeBlockBytes)
		}
		return s.heapBlock(i, smallBlockBytes)
	}
	if i >= largeBlock {
		at := (i - largeBlock) * largeBlockBytes
		return s.large[at : at+largeBlockBytes]
	}
	return s.small[i*smallBlockBytes : (i+1)*smallBlockBytes]
}

func (s *segment) freeBlock(i int) {
	if i >= largeBlock {
		clearBit(&s.head.largeUsed, i-largeBlock)
	} else {
		clearBit(&s.head.smallUsed, i)
	}
}
