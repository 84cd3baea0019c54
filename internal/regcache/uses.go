package regcache

// How often a buffer was used. Small messages are copied into memory that is
// registered already; a buffer that is used often is better registered itself
// and sent from where it is. This table finds such buffers, for the protocol of
// frequently-used buffers.
//
// It pays to register when the buffer will be used n > R/(C−V) times: R is the
// cost of a registration, C of the copy that is saved, V of the look-up.
// Threshold computes n. Since nobody knows the future, a protocol registers
// after a part of n.
//
// The table is a hash table of buckets, four buffers and one cache line each, in pairs
// that lie side by side, so that a look costs one miss. A pair that overflows makes a
// table of which a quarter is in use grow, up to a limit, and only while it is worth it: a table of some size stops
// growing when a bucket overflows and less than a fifth of the buffers are
// frequently used. From then on, or at the limit, a newcomer weakens the buffers
// of its bucket until one makes way: what is used often stays, what is used no
// more goes, and a program that changes its buffers is followed.
//
// The table does not keep memory alive. A slice that is collected leaves its count
// behind, and a new one may get the address; so a count is good for a few garbage
// collections without a use, as a registration is, and begins anew then. Drop of memory
// that is unmapped is followed by ForgetRange.

import (
	"math"
	"math/bits"

	"github.com/muster-mpi/muster/rdma"
)

// Threshold is the number of uses from which registering a buffer of n bytes
// pays, given what registering and copying cost, and what looking it up costs in
// nanoseconds. It is false if it never does.
func Threshold(register, copy rdma.Cost, lookup float64, n int) (uses uint32, pays bool) {
	gain := copy.Of(n) - lookup
	if gain <= 0 {
		return 0, false
	}
	least := math.Floor(register.Of(n)/gain) + 1
	return uint32(min(least, math.MaxUint32)), true
}

// UsesConfig sets up a table. Frequent must be given.
type UsesConfig struct {
	// Frequent is how many uses make a buffer of so many bytes a frequently-used
	// one. It always gives the same answer for the same size.
	Frequent func(size int) uint32
	// Limit is how many buffers the table may have room for. Default 1048576,
	// which takes 16 MB; the table starts with 256.
	Limit int
	// Free is up to which room the table grows without asking whether it is
	// worth it. Default 65536, which takes 1 MB: a program must have had the
	// time to use its buffers again.
	Free int
	// Share is which share of the buffers must be frequently used for the table
	// to grow. Default 0.2.
	Share float64
}

// Uses counts uses of buffers. It is not safe for concurrent use.
type Uses struct {
	cfg     UsesConfig
	buckets []useBucket
	shift   uint8  // 64 - log2(len(buckets))
	now     uint16 // the generation
	stats   UsesStats
}

// UsesStats says what a table did and holds.
type UsesStats struct {
	Buffers   int    // known now
	Frequent  int    // of these, frequently used
	Refused   uint64 // notes of buffers that found no place
	Displaced uint64 // buffers that lost their place
	Outlived  uint64 // buffers that were not used for so long that their memory may be another's
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

// NewUses makes an empty table.
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

// keyOf is a buffer's start with its size to the next power of two, so that a
// buffer that is sent with a few bytes more or less counts as one, and a struct
// and its first field as two.
func keyOf(addr uint64, size int) uint64 {
	return addr<<usesInClass | uint64(classOf(uint64(max(size, 1)))&63)
}

func (u *Uses) bucketOf(key uint64) *useBucket { return &u.buckets[key*golden>>u.shift] }

// besideOf is the other half of a pair of buckets: neighbors in memory, which the
// processor fetches together. What finds its bucket full goes there.
func (u *Uses) besideOf(key uint64) *useBucket { return &u.buckets[key*golden>>u.shift^1] }

// Generation says that so many generations have passed (Cache.Generation).
func (u *Uses) Generation(g uint32) { u.now = uint16(g) }

// Note counts a use of the size bytes at addr and returns how often they have
// been used, as far as is known; 0 if the buffer has found no place.
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

// find is the entry of a buffer, nil if it is not known.
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

// outlive sees whether the memory may be another's.
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

// admit finds a place for a buffer that is not known.
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

// roomIn is a free place in one of two buckets, or nil.
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

// weaken takes one use from each buffer of a full bucket (Misra and Gries,
// Finding repeated elements, 1982), and half of what is beyond frequent, so that
// a buffer that was used a million times does not stay for as long.
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
		return false // three quarters are empty: it must not outgrow the processor's cache for the sake of a bucket
	}
	worth := room <= u.cfg.Free || float64(u.stats.Frequent) >= u.cfg.Share*float64(u.stats.Buffers)
	return worth && room <= u.cfg.Limit
}

// grow doubles the table. Every bucket becomes a pair, which has room for what the old pair
// held of it, so none overflows.
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

// Forget forgets a buffer: it was registered, or is about to be unmapped.
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

// ForgetRange forgets the buffers that begin in [lo, hi): that memory is about to be
// unmapped. It looks at the whole table.
func (u *Uses) ForgetRange(lo, hi uint64) {
	for i := range u.buckets {
		for j := range u.buckets[i] {
			s := &u.buckets[i][j]
			// The highest bits of an address have no room in the key; no address of a
			// program has any.
			if addr := s.key >> usesInClass; s.key != 0 && addr >= lo && addr < hi {
				u.drop(s)
			}
		}
	}
}

// Len is the number of buffers that are known.
func (u *Uses) Len() int { return u.stats.Buffers }

// Stats says what the table did and holds.
func (u *Uses) Stats() UsesStats { return u.stats }
