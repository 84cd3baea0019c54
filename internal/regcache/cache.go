package regcache

// The path of a request:
//
//	Get  → find (index.go)     a region covers the range, with the rights: hold it
//	     → miss                overlapping regions are retired, the union is registered
//	        → register         if the device refuses: without the union, then after
//	                           evicting old regions
//	Put  → held (held.go)      by the key alone; the region stays registered
//
// Regions in the index never overlap, so at most one covers a range. A request that
// overlaps a region without being covered replaces it: the new region is the union of
// both, unless that would be more than twice the requested size, as when a window slides
// over a large array.
//
// A region is exactly what was requested (or such a union, which lies in the same object),
// not rounded to pages: peers get no access to adjacent memory, and no hit refers to
// memory that the region does not keep alive. Rights are widened the same way, so a buffer
// that is sent and received has one region.

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Device is the part of rdma.Device that a cache needs. Simultaneous registrations have
// different RKeys.
type Device interface {
	Register(mem []byte, acc rdma.Access) (rdma.MR, error)
	Deregister(mr rdma.MR) error
}

// Config sets the limits of a Cache. The zero value is usable.
type Config struct {
	// Bytes is the amount of memory that may be registered before unused regions are
	// evicted. Default 268435456: enough for the buffers of most programs, and little
	// compared to the memory of a host. Negative: nothing stays registered after use.
	Bytes int64
	// Entries is the largest number of regions. Default 65536: adapters with fewer are
	// no longer built.
	Entries int
	// Ages is the number of generations without use after which a region is evicted.
	// Default 3.
	Ages uint32
	// Generation is the shortest time between two generations, which are counted at
	// garbage collections. Default 100 ms: a program that allocates rapidly collects every
	// few milliseconds, and would lose buffers that it uses in every step.
	Generation time.Duration
}

const (
	defaultBytes      = 256 << 20
	defaultEntries    = 1 << 16
	defaultAges       = 3
	defaultGeneration = 100 * time.Millisecond
)

// Stats are the counters of a cache and its current contents.
type Stats struct {
	Hits    uint64 // requests that found a region
	Misses  uint64 // requests that had to register
	Passing uint64 // of these, registered for one use: too large, cooperative, or caching is disabled
	Widened uint64 // of these, registered together with overlapping regions

	Evicted uint64 // regions evicted because of a limit, or to make room for another
	Aged    uint64 // regions evicted because they were not used during several collections
	Retired uint64 // regions replaced by an overlapping one
	Dropped uint64 // regions ended by Drop or Flush

	Failed  uint64 // registrations that the device refused
	Retried uint64 // of these, retried after evicting old regions
	Stuck   uint64 // deregistrations that the device refused; their memory is kept

	Bytes   int64 // registered now
	Entries int   // regions registered now
	Held    int   // of these, in use
}

// Cache holds the registrations of one device.
type Cache struct {
	dev   Device
	cfg   Config
	gens  *generations
	aged  uint32 // the generation up to which old regions have been evicted
	seq   uint64 // counts uses
	index index
	held  held  // regions in use, by key
	queue queue // evictable regions, next one last
	fixed queue // regions that are never evicted
	idle  int   // regions in the queue that are not in use
	bytes int64 // of regions in the queue

	regions  regions
	stuck    []*region
	overlaps []uint32 // scratch
	stats    Stats
	closed   bool
}

// ErrInUse reports that memory is still in use.
var ErrInUse = errors.New("operations that use it have not ended")

// New returns an empty cache.
func New(dev Device, cfg Config) *Cache {
	if cfg.Bytes == 0 {
		cfg.Bytes = defaultBytes
	}
	if cfg.Entries == 0 {
		cfg.Entries = defaultEntries
	}
	if cfg.Ages == 0 {
		cfg.Ages = defaultAges
	}
	if cfg.Generation == 0 {
		cfg.Generation = defaultGeneration
	}
	return &Cache{dev: dev, cfg: cfg, gens: newGenerations(cfg.Generation)}
}

// Get returns a registration of mem with at least the rights acc, to be released by Put.
// Base is the address of mem's first byte as peers must use it, also when mem is a part of
// a larger region.
//
// Peers may access the whole region, with all its rights, until it is deregistered: that
// can be long after Put.
func (c *Cache) Get(mem []byte, acc rdma.Access) (rdma.MR, error) {
	if g := c.gens.now(); g != c.aged {
		c.age(g)
	}
	lo := rdma.MemOf(mem).Addr()
	id := c.index.find(lo, lo+uint64(len(mem)))
	if id == 0 {
		return c.miss(mem, acc)
	}
	r := c.regions.at(id)
	if acc&^r.acc != 0 {
		return c.miss(mem, acc)
	}
	c.stats.Hits++
	c.hold(r)
	return r.part(lo, uint64(len(mem))), nil
}

// hold counts a use.
func (c *Cache) hold(r *region) {
	c.seq++
	r.used, r.gen = c.seq, c.aged
	if r.refs++; r.refs == 1 {
		c.held.add(r)
		if r.location == inQueue {
			c.idle--
		}
	}
}

// Put releases a registration of Get. The region stays registered unless a limit is
// exceeded, or it has been retired meanwhile.
func (c *Cache) Put(mr rdma.MR) error {
	r := c.held.find(mr.RKey)
	if r == nil {
		return fmt.Errorf("regcache: no region with the key %#x is in use: it was released before, or is not from this cache", mr.RKey)
	}
	if r.refs--; r.refs > 0 {
		return nil
	}
	c.held.remove(r)
	switch r.location {
	case outside:
		return c.end(r)
	case inQueue:
		c.idle++
		r.gen = c.aged
		c.trim(0, 0)
	}
	return nil
}

// miss registers memory that no region covers.
func (c *Cache) miss(mem []byte, acc rdma.Access) (rdma.MR, error) {
	if c.closed {
		return rdma.MR{}, fmt.Errorf("regcache: register %d bytes: %w", len(mem), rdma.ErrClosed)
	}
	c.stats.Misses++
	lo, size := rdma.MemOf(mem).Addr(), uint64(len(mem))
	c.overlaps = c.index.overlapping(lo, lo+size, c.overlaps[:0])
	stays := c.mayStay(mem, acc)
	var r *region
	var err error
	if stays {
		r, err = c.registerUnion(mem, acc)
	} else {
		c.stats.Passing++
		r, err = c.register(mem, acc)
	}
	if err != nil {
		return rdma.MR{}, err
	}
	c.hold(r)
	if stays {
		c.index.insert(r.lo, r.hi, r.id)
		c.enqueue(r)
	}
	return r.part(lo, size), nil
}

// mayStay reports whether a registration may be kept and shared.
func (c *Cache) mayStay(mem []byte, acc rdma.Access) bool {
	if len(mem) == 0 || int64(len(mem)) > c.cfg.Bytes {
		return false
	}
	// The registration holds the cursor of a cooperative copy, so it cannot be shared.
	if acc&rdma.Cooperative != 0 {
		return false
	}
	for _, id := range c.overlaps {
		if c.regions.at(id).location == inFixed {
			return false
		}
	}
	return true
}

// registerUnion registers mem and the regions it overlaps as one region, or mem alone if
// the union would be too large or is refused.
func (c *Cache) registerUnion(mem []byte, acc rdma.Access) (*region, error) {
	wide, wideAcc := mem, acc
	for _, id := range c.overlaps {
		r := c.regions.at(id)
		wide, wideAcc = union(wide, r.mem.Bytes()), wideAcc|r.acc
		c.retire(r)
	}
	if len(wide) > 2*len(mem) || int64(len(wide)) > c.cfg.Bytes {
		wide, wideAcc = mem, acc
	}
	c.trim(int64(len(wide)), 1)
	if len(wide) > len(mem) || wideAcc != acc {
		// A part of the union may be unmapped or read-only, which this request
		// does not depend on.
		if r, err := c.tryRegister(wide, wideAcc); err == nil {
			c.stats.Widened++
			return r, nil
		}
	}
	return c.register(mem, acc)
}

// register registers exactly mem. If the device refuses, for instance because no more
// memory can be locked, it evicts unused regions and tries once more.
func (c *Cache) register(mem []byte, acc rdma.Access) (*region, error) {
	r, err := c.tryRegister(mem, acc)
	if err != nil && !errors.Is(err, rdma.ErrClosed) && c.makeRoom(int64(len(mem))) {
		c.stats.Retried++
		r, err = c.tryRegister(mem, acc)
	}
	if err != nil {
		return nil, fmt.Errorf("regcache: register %d bytes beside %d in %d regions: %w", len(mem), c.stats.Bytes, c.stats.Entries, err)
	}
	return r, nil
}

func (c *Cache) tryRegister(mem []byte, acc rdma.Access) (*region, error) {
	mr, err := c.dev.Register(mem, acc)
	if err != nil {
		c.stats.Failed++
		return nil, err
	}
	r := c.regions.take()
	r.set(mem, acc, mr)
	c.stats.Bytes += int64(len(mem))
	c.stats.Entries++
	return r, nil
}

// Fix registers mem until Drop, outside of the limits: memory that the library has mapped
// itself for messages.
func (c *Cache) Fix(mem []byte, acc rdma.Access) error {
	if c.closed {
		return fmt.Errorf("regcache: register %d bytes until Drop: %w", len(mem), rdma.ErrClosed)
	}
	if len(mem) == 0 {
		return nil
	}
	lo := rdma.MemOf(mem).Addr()
	c.overlaps = c.index.overlapping(lo, lo+uint64(len(mem)), c.overlaps[:0])
	for _, id := range c.overlaps {
		if r := c.regions.at(id); r.location == inFixed {
			return fmt.Errorf("regcache: register %d bytes until Drop: the region of %d bytes at %#x is so registered already", len(mem), r.hi-r.lo, r.lo)
		}
	}
	for _, id := range c.overlaps {
		c.retire(c.regions.at(id))
	}
	r, err := c.register(mem, acc)
	if err != nil {
		return err
	}
	c.index.insert(r.lo, r.hi, r.id)
	r.location = inFixed
	c.fixed.push(r)
	return nil
}

// Stats returns the counters of the cache.
func (c *Cache) Stats() Stats {
	s := c.stats
	s.Held = c.held.n
	return s
}
