package regcache

// Counts the uses of buffers. Small messages are copied into memory that is registered
// already; a frequently used buffer is better registered itself and sent without a copy.
// This table finds such buffers, for the protocol of frequently-used buffers.
//
// Registering pays if the buffer will be used n > R/(C−V) times: R is the cost of a
// registration, C of the copy that is saved, V of the look-up. Threshold computes n. Since
// the future is unknown, a protocol registers after a fraction of n.
//
// The table is a hash table of buckets, with four buffers and one cache line each, in
// adjacent pairs, so that a look-up costs one cache miss. A pair that overflows makes a
// table grow that is at least a quarter full, up to a limit, and only while it pays: a
// table of some size stops growing when a bucket overflows and less than a fifth of the
// buffers are frequently used. From then on, or at the limit, a newcomer weakens the
// buffers of its bucket until one is evicted: frequently used buffers stay, unused ones
// disappear, and the table follows a program that changes its buffers.
//
// The table does not keep memory alive. A collected slice leaves its count behind, and a
// new one may get its address; so a count expires after a few garbage collections without
// a use, like a registration. Drop of unmapped memory must be followed by ForgetRange.

import (
	"math"
	"math/bits"

	"github.com/muster-mpi/muster/rdma"
)

// Threshold returns the number of uses from which registering a buffer of n bytes pays,
// given the costs to register and to copy, and to look it up in nanoseconds. pays is false
// if it never does.
func Threshold(register, copy rdma.Cost, lookup float64, n int) (uses uint32, pays bool) {
	gain := copy.Of(n) - lookup
	if gain <= 0 {
		return 0, false
	}
	least := math.Floor(register.Of(n)/gain) + 1
	return uint32(min(least, math.MaxUint32)), true
}

// UsesConfig configures a table. Frequent is required.
type UsesConfig struct {
	// Frequent returns how many uses make a buffer of so many bytes a frequently used one.
	// It must be a pure function.
	Frequent func(size int) uint32
	// Limit is the largest number of buffers in the table. Default 1048576, which takes
	// 16 MB; the table starts with 256.
	Limit int
	// Free is the size up to which the table grows regardless of the share of frequently
	// used buffers. Default 65536, which takes 1 MB: a program must have had the time to
	// reuse its buffers.
	Free int
	// Share is the share of frequently used buffers that the table needs to grow. Default
	// 0.2.
	Share float64
}

// Uses counts uses of buffers. It is not safe for concurrent use.
type Uses struct {
	cfg     UsesConfig
	buckets []useBucket
	shift   uint8  // 64 - log2(len(buckets))
	now     uint16 // current generation
	stats   UsesStats
}

// UsesStats are the counters of a table.
type UsesStats struct {
	Buffers   int    // in the table now
	Frequent  int    // of these, frequently used
	Refused   uint64 // uses that were not counted because the bucket was full
	Displaced uint64 // buffers that were evicted
	Outlived  uint64 // counts that expired: the address may belong to another buffer
}

// useBucket is one cache line.
type useBucket [4]useEntry

type useEntry struct {
	key   uint64 // 0: empty
	count uint32
	limit uint16 // the count that makes it frequently used
	gen   uint16 // of the last use
}

const (
	usesStart   = 64 // buckets
	usesLimit   = 1 << 20
	usesFree    = 1 << 16
	usesShare   = 0.2
	usesInClass = 6 // bits of a key
	usesAges    = 3 // generations, as in Config.Ages
)

// NewUses returns an empty table.
func NewUses(cfg UsesConfig) *Uses {
	if cfg.Limit == 0 {
		cfg.Limit = usesLimit
	}
	if cfg.Free == 0 {
		cfg.Free = usesFree
	}
	if cfg.Share == 0 {
		cfg.Share = usesShare
	}
	u := &Uses{cfg: cfg}
	u.buckets = make([]useBucket, usesStart)
	u.shift = 64 - uint8(bits.TrailingZeros(usesStart))
	return u
}

// keyOf combines a buffer's address with its size, rounded up to a power of two, so that a
// buffer that is sent with a few bytes more or less counts as one, and a struct and its
// first field as two.
func keyOf(addr uint64, size int) uint64 {
	return addr<<usesInClass | uint64(classOf(uint64(max(size, 1)))&63)
}

func (u *Uses) bucketOf(key uint64) *useBucket { return &u.buckets[key*golden>>u.shift] }

// besideOf returns the other half of a pair of buckets: neighbors in memory, which the
// processor fetches together. It takes the overflow of a full bucket.
func (u *Uses) besideOf(key uint64) *useBucket { return &u.buckets[key*golden>>u.shift^1] }

// Generation sets the current generation (Cache.Generation).
func (u *Uses) Generation(g uint32) { u.now = uint16(g) }

// Note counts a use of the size bytes at addr and returns the number of uses, as far as
// recorded; 0 if the table has no room for the buffer.
func (u *Uses) Note(addr uint64, size int) uint32 {
	key := keyOf(addr, size)
	s := u.find(key)
	if s == nil {
		return u.admit(key, size)
	}
	if s.gen != u.now {
		u.outlive(s)
	}
	if s.count < math.MaxUint32 {
		if s.count++; s.count == uint32(s.limit) {
			u.stats.Frequent++
		}
	}
	return s.count
}

// find returns the entry of a buffer, or nil.
func (u *Uses) find(key uint64) *useEntry {
	b := u.bucketOf(key)
	for i := range b {
		if b[i].key == key {
			return &b[i]
		}
	}
	b = u.besideOf(key)
	for i := range b {
		if b[i].key == key {
			return &b[i]
		}
	}
	return nil
}

// outlive resets a count that has expired.
func (u *Uses) outlive(s *useEntry) {
	if u.now-s.gen >= usesAges {
		if s.count >= uint32(s.limit) {
			u.stats.Frequent--
		}
		u.stats.Outlived++
		s.count = 0
	}
	s.gen = u.now
}

// admit adds a buffer to the table.
func (u *Uses) admit(key uint64, size int) uint32 {
	for {
		b, beside := u.bucketOf(key), u.besideOf(key)
		if s := roomIn(b, beside); s != nil {
			return u.fill(s, key, size)
		}
		if u.mayGrow() {
			u.grow()
			continue
		}
		u.weaken(b)
		if s := roomIn(b, beside); s != nil {
			return u.fill(s, key, size)
		}
		u.stats.Refused++
		return 0
	}
}

// roomIn returns a free entry in one of two buckets, or nil.
func roomIn(b, beside *useBucket) *useEntry {
	for i := range b {
		if b[i].key == 0 {
			return &b[i]
		}
	}
	for i := range beside {
		if beside[i].key == 0 {
			return &beside[i]
		}
	}
	return nil
}

// weaken takes one use from each buffer of a full bucket (Misra and Gries, Finding repeated
// elements, 1982), and half of the excess beyond frequent, so that a buffer that was used
// a million times does not stay as long.
func (u *Uses) weaken(b *useBucket) {
	for i := range b {
		s := &b[i]
		left, limit := s.count-1, uint32(s.limit)
		if s.count > limit {
			left -= (s.count - limit) / 2
		}
		if s.count >= limit && left < limit {
			u.stats.Frequent--
		}
		if s.count = left; left == 0 {
			u.stats.Displaced++
			u.stats.Buffers--
			*s = useEntry{}
		}
	}
}

func (u *Uses) fill(s *useEntry, key uint64, size int) uint32 {
	*s = useEntry{key: key, count: 1, limit: uint16(min(max(u.cfg.Frequent(size), 1), math.MaxUint16)), gen: u.now}
	u.stats.Buffers++
	if s.limit == 1 {
		u.stats.Frequent++
	}
	return 1
}

func (u *Uses) mayGrow() bool {
	room := 2 * len(u.buckets) * len(useBucket{})
	if 8*u.stats.Buffers < room {
		return false // three quarters are empty: one full bucket does not justify outgrowing the processor's cache
	}
	worth := room <= u.cfg.Free || float64(u.stats.Frequent) >= u.cfg.Share*float64(u.stats.Buffers)
	return worth && room <= u.cfg.Limit
}

// grow doubles the table. Every bucket becomes a pair, which has room for its share of the
// old pair, so none overflows.
func (u *Uses) grow() {
	old := u.buckets
	u.buckets = make([]useBucket, 2*len(old))
	u.shift--
	for i := range old {
		for _, s := range old[i] {
			if s.key == 0 {
				continue
			}
			*roomIn(u.bucketOf(s.key), u.besideOf(s.key)) = s
		}
	}
}

// Forget removes a buffer: it was registered, or is about to be unmapped.
func (u *Uses) Forget(addr uint64, size int) {
	if s := u.find(keyOf(addr, size)); s != nil {
		u.drop(s)
	}
}

func (u *Uses) drop(s *useEntry) {
	if s.count >= uint32(s.limit) {
		u.stats.Frequent--
	}
	u.stats.Buffers--
	*s = useEntry{}
}

// ForgetRange removes the buffers that begin in [lo, hi), which is about to be unmapped. It
// scans the whole table.
func (u *Uses) ForgetRange(lo, hi uint64) {
	for i := range u.buckets {
		for j := range u.buckets[i] {
			s := &u.buckets[i][j]
			// The key lacks the highest bits of an address; they are 0 in user space.
			if addr := s.key >> usesInClass; s.key != 0 && addr >= lo && addr < hi {
				u.drop(s)
			}
		}
	}
}

// Len returns the number of buffers in the table.
func (u *Uses) Len() int { return u.stats.Buffers }

// Stats returns the counters of the table.
func (u *Uses) Stats() UsesStats { return u.stats }
