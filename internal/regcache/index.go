package regcache

// The index finds the region that covers an address range. The regions do not overlap.
//
// They are sorted by size into classes: class k has those of more than 2^(k-1) and at most
// 2^k bytes. The address space is divided into blocks of 2^k bytes, and a hash table per
// class lists each region under the one or two blocks that it touches. At most three
// regions of a class touch a block. A search checks the block of its first byte, in the
// non-empty classes that are large enough, smallest first: a request for a whole region
// finds it in the first one. A balanced tree takes twenty dependent steps for a million
// regions, each with an unpredictable branch; this takes one.
//
// A bucket is a cache line with three ways, which are compared without a branch, so that
// the processor does not stall on a misprediction. It has no pointers, so the garbage
// collector does not scan the tables.

import "math/bits"

// golden spreads consecutive numbers (Knuth, The Art of Computer Programming 3, 6.4: 2^64
// divided by the golden ratio).
const golden = 0x9E3779B97F4A7C15

type index struct {
	present uint64 // bit k: class k has regions
	classes [64]table
}

// table holds the regions of one class.
type table struct {
	buckets []bucket // a power of two
	shift   uint8    // 64 - log2(len(buckets))
	n       int      // ways in use
}

const ways = 3

type bucket struct {
	lo, hi [ways]uint64 // 0: free
	id     [ways]uint32 // with second, if listed under the region's second block
	// over counts entries that belong here but are in a later bucket.
	over uint32
}

const second = 1 << 31

const tableMin = 4

// classOf returns the class of a size; for 0 that is 64, which is no class.
func classOf(size uint64) int { return bits.Len64(size - 1) }

// find returns the number of the region that covers [lo, hi), or 0.
func (x *index) find(lo, hi uint64) (id uint32) {
	least := classOf(hi - lo)
	for rest := x.present >> least << least; rest != 0; rest &= rest - 1 {
		k := bits.TrailingZeros64(rest) & 63
		t := &x.classes[k]
		for i := lo >> k * golden >> t.shift; ; i++ {
			b := &t.buckets[i&uint64(len(t.buckets)-1)]
			if id = b.covering(lo, hi); id != 0 {
				return id
			}
			if b.over == 0 {
				break
			}
		}
	}
	return 0
}

// covering compares all ways. Addresses have less than 63 bits, so the sign bit of the
// differences shows whether lo and hi lie inside.
func (b *bucket) covering(lo, hi uint64) (id uint32) {
	if int64((lo-b.lo[0])|(b.hi[0]-hi)) >= 0 {
		id = b.id[0]
	}
	if int64((lo-b.lo[1])|(b.hi[1]-hi)) >= 0 {
		id = b.id[1]
	}
	if int64((lo-b.lo[2])|(b.hi[2]-hi)) >= 0 {
		id = b.id[2]
	}
	return id &^ second
}

// overlapping appends the numbers of the regions that overlap [lo, hi). It is used for
// misses: a large range takes a look-up per block of each class, but never more than the
// class has buckets, which is little compared to registering the range.
func (x *index) overlapping(lo, hi uint64, to []uint32) []uint32 {
	if lo == hi {
		return to
	}
	for rest := x.present; rest != 0; rest &= rest - 1 {
		k := bits.TrailingZeros64(rest)
		to = x.classes[k].overlapping(k, lo, hi, to)
	}
	return to
}

func (t *table) overlapping(k int, lo, hi uint64, to []uint32) []uint32 {
	first, last := lo>>k, (hi-1)>>k
	if last-first >= uint64(len(t.buckets)) { // fewer buckets than blocks
		for i := range t.buckets {
			for j := range ways {
				b := &t.buckets[i]
				if b.lo[j] < hi && lo < b.hi[j] && b.id[j]&second == 0 {
					to = append(to, b.id[j])
				}
			}
		}
		return to
	}
	for block := first; block <= last; block++ {
		for i := t.home(block); ; i = t.next(i) {
			b := &t.buckets[i]
			for j := range ways {
				// A region of two blocks counts at the first one checked.
				if b.lo[j] < hi && lo < b.hi[j] && b.block(j, k) == block && (b.id[j]&second == 0 || b.lo[j]>>k < first) {
					to = append(to, b.id[j]&^second)
				}
			}
			if b.over == 0 {
				break
			}
		}
	}
	return to
}

// block returns the block that way j is listed under.
func (b *bucket) block(j, k int) uint64 {
	if b.id[j]&second != 0 {
		return (b.hi[j] - 1) >> k
	}
	return b.lo[j] >> k
}

// insert adds region id, which overlaps none.
func (x *index) insert(lo, hi uint64, id uint32) {
	k := classOf(hi - lo)
	t := &x.classes[k]
	if 2*(t.n+2) > ways*len(t.buckets) {
		t.resize(k, max(tableMin, 2*len(t.buckets)))
	}
	first, last := lo>>k, (hi-1)>>k
	t.put(first, lo, hi, id)
	if last != first {
		t.put(last, lo, hi, id|second)
	}
	x.present |= 1 << k
}

// remove removes a region.
func (x *index) remove(lo, hi uint64, id uint32) {
	k := classOf(hi - lo)
	t := &x.classes[k]
	first, last := lo>>k, (hi-1)>>k
	t.take(first, id)
	if last != first {
		t.take(last, id|second)
	}
	if t.n == 0 {
		x.present &^= 1 << k
	}
	if len(t.buckets) > tableMin && 16*t.n < ways*len(t.buckets) {
		t.resize(k, len(t.buckets)/2)
	}
}

func (t *table) home(block uint64) int { return int(block * golden >> t.shift) }
func (t *table) next(i int) int        { return (i + 1) & (len(t.buckets) - 1) }

func (t *table) put(block, lo, hi uint64, id uint32) {
	t.n++
	for i := t.home(block); ; i = t.next(i) {
		b := &t.buckets[i]
		for j := range ways {
			if b.id[j] == 0 {
				b.lo[j], b.hi[j], b.id[j] = lo, hi, id
				return
			}
		}
		b.over++
	}
}

func (t *table) take(block uint64, id uint32) {
	t.n--
	for i := t.home(block); ; i = t.next(i) {
		b := &t.buckets[i]
		for j := range ways {
			if b.id[j] == id {
				b.lo[j], b.hi[j], b.id[j] = 0, 0, 0
				return
			}
		}
		b.over--
	}
}

func (t *table) resize(k, size int) {
	old := t.buckets
	*t = table{buckets: make([]bucket, size), shift: uint8(64 - bits.TrailingZeros(uint(size)))}
	for i := range old {
		b := &old[i]
		for j := range ways {
			if b.id[j] != 0 {
				t.put(b.block(j, k), b.lo[j], b.hi[j], b.id[j])
			}
		}
	}
}
