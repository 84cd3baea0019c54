package shm

import (
	"math/rand/v2"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// TestPiecesCoverTheCopy lets both sides claim in random order: the pieces must cover the
// copy without overlap, each side from its end.
func TestPiecesCoverTheCopy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lengths := []uint64{1, 4095, 4096, 4097, 16 << 10, 64 << 10, 64<<10 + 1, twoPieces, twoPieces + 1, 1<<20 + 17, 100 << 20,
		gavePage*endMask - 1, gavePage * endMask, 1<<40 + 12345}
	for range 200 {
		lengths = append(lengths, 1+rng.Uint64N(1<<20))
	}
	for _, length := range lengths {
		const epoch = 0xfffe
		ps := &pullState{cursor: epoch << epochShift}
		front := &transfer{op: rdma.OpPull, epoch: epoch, length: length}
		back := &transfer{op: rdma.OpPush, epoch: epoch, length: length}
		low, high := uint64(0), length
		for claims := 0; low < high; claims++ {
			if length > 1<<30 && claims == 100 { // too long to claim all of it
				break
			}
			if left := countUnclaimed(uint64(ps.cursor), length); left != high-low {
				t.Fatalf("copy of %d bytes: %d bytes are unclaimed between %d and %d", length, left, low, high)
			}
			x := front
			if rng.IntN(2) == 0 {
				x = back
			}
			off, n := ps.claim(x)
			switch {
			case n == 0 || n > maxPiece+gavePage:
				t.Fatalf("copy of %d bytes: %v claims %d bytes of %d", length, x.op, n, high-low)
			case x == front && off == low && n <= high-low:
				low += n
			case x == back && off+n == high && n <= high-low:
				high = off
			default:
				t.Fatalf("copy of %d bytes: %v claims %d bytes at %d of what is left between %d and %d", length, x.op, n, off, low, high)
			}
		}
		if low < high {
			continue
		}
		if _, n := ps.claim(front); n != 0 {
			t.Errorf("copy of %d bytes: %d bytes claimed after its end", length, n)
		}
		if ps.cursor.Load()>>epochShift != epoch {
			t.Errorf("copy of %d bytes: the claims changed the epoch", length)
		}
	}
}

// TestPiecesAreHalves checks that a copy of medium size has one piece for each side.
func TestPiecesAreHalves(t *testing.T) {
	for _, length := range []uint64{40000, 64 << 10, 100000, twoPieces} {
		ps := &pullState{}
		first, second := &transfer{op: rdma.OpPull, length: length}, &transfer{op: rdma.OpPush, length: length}
		_, a := ps.claim(first)
		_, b := ps.claim(second)
		if a+b != length || max(a, b)-min(a, b) > 2*gavePage {
			t.Errorf("copy of %d bytes: pieces of %d and %d bytes instead of two halves", length, a, b)
		}
	}
}

// TestDamagedCursor checks that a cursor that no claims can produce leaves nothing.
func TestDamagedCursor(t *testing.T) {
	for _, cursor := range []uint64{endMask, endMask << endBits, epochValue, 17, 17 << endBits, 8 | 9<<endBits} {
		ps := &pullState{cursor: word(cursor)}
		for _, op := range []rdma.Op{rdma.OpPull, rdma.OpPush} {
			if off, n := ps.claim(&transfer{op: op, length: 64 << 10}); n != 0 {
				t.Errorf("cursor %#x: %v claims %d bytes at %d", cursor, op, n, off)
			}
		}
		if n := countUnclaimed(cursor, 64<<10); n != 0 {
			t.Errorf("cursor %#x: %d bytes are unclaimed", cursor, n)
		}
	}
}
