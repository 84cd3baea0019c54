package regcache

// What ends a registration. A region in use is never deregistered: it leaves the index,
// and ends when it is released. Regions are evicted approximately in the order of their
// last use (queue.go).

import (
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

const (
	// ageBatch bounds how many regions one call checks for their age.
	ageBatch = 16
	// slack is what a registration may lock beyond its bytes: a page at each end.
	slack = 2 * 4096
)

// trim evicts until so many more bytes and entries fit the limits, or nothing evictable is
// left.
func (c *Cache) trim(bytes int64, entries int) {
	for c.bytes+bytes > c.cfg.Bytes || c.queue.n+entries > c.cfg.Entries {
		if c.evictOne() == 0 {
			return
		}
	}
}

// makeRoom evicts regions of at least so many bytes, if there are enough. It returns false
// if there was none.
func (c *Cache) makeRoom(bytes int64) bool {
	freed := c.evictOne()
	for n := freed; n > 0 && freed < bytes+slack; freed += n {
		n = c.evictOne()
	}
	return freed > 0
}

// evictOne ends the region that is next in the queue. It returns its bytes, 0 if none
// may be evicted.
func (c *Cache) evictOne() int64 {
	for c.idle > 0 {
		r := c.queue.last
		if r.refs > 0 || r.used > r.queued {
			c.requeue(r, c.aged)
			continue
		}
		size := int64(r.hi - r.lo)
		c.stats.Evicted++
		c.remove(r)
		return size
	}
	return 0
}

// age evicts regions that have not been used for some generations. It checks a few of
// them; if there are more, aged stays behind and the next call continues.
func (c *Cache) age(now uint32) {
	for range ageBatch {
		r := c.queue.last
		if r == nil || now-r.queuedGen < c.cfg.Ages {
			c.aged = now
			return
		}
		if r.refs > 0 || now-r.gen < c.cfg.Ages {
			c.requeue(r, now)
			continue
		}
		c.stats.Aged++
		c.remove(r)
	}
}

// Age evicts regions that have not been used during some garbage collections. Get does the
// same; Age is for a caller that has nothing to send, so that their memory is released
// too. It costs one load when there is nothing to do.
func (c *Cache) Age() {
	for g := c.gens.now(); g != c.aged; {
		c.age(g)
	}
}

// Generation returns the number of the current generation (Config.Generation).
func (c *Cache) Generation() uint32 { return c.gens.now() }

// enqueue makes a new region, which is in use, evictable.
func (c *Cache) enqueue(r *region) {
	r.location = inQueue
	r.queued, r.queuedGen = c.seq, c.aged
	c.queue.push(r)
	c.bytes += int64(r.hi - r.lo)
}

func (c *Cache) requeue(r *region, gen uint32) {
	r.queued, r.queuedGen = c.seq, gen
	c.queue.remove(r)
	c.queue.push(r)
}

// retire removes r because a new region overlaps it.
func (c *Cache) retire(r *region) {
	c.stats.Retired++
	c.remove(r)
}

// remove removes a region from the index. It is deregistered now, or when its last user
// releases it.
func (c *Cache) remove(r *region) {
	c.index.remove(r.lo, r.hi, r.id)
	if r.location == inFixed {
		c.fixed.remove(r)
	} else {
		c.queue.remove(r)
		c.bytes -= int64(r.hi - r.lo)
		if r.refs == 0 {
			c.idle--
		}
	}
	r.location = outside
	if r.refs == 0 {
		_ = c.end(r) // counted as stuck
	}
}

// end deregisters a region. If the device refuses, it may still access the memory, which is
// therefore kept alive.
func (c *Cache) end(r *region) error {
	if err := c.dev.Deregister(r.whole()); err != nil {
		c.stats.Stuck++
		c.stuck = append(c.stuck, r)
		return fmt.Errorf("regcache: deregister %d bytes: %w", r.hi-r.lo, err)
	}
	c.stats.Bytes -= int64(r.hi - r.lo)
	c.stats.Entries--
	c.regions.release(r)
	return nil
}

// Drop ends every registration that overlaps mem, which is about to be unmapped, or whose
// pages are about to change without the runtime's knowledge. If an operation still uses
// one, Drop returns ErrInUse, and mem must stay mapped until that operation has ended.
func (c *Cache) Drop(mem []byte) error {
	lo := rdma.MemOf(mem).Addr()
	hi := lo + uint64(len(mem))
	c.overlaps = c.index.overlapping(lo, hi, c.overlaps[:0])
	for _, id := range c.overlaps {
		c.stats.Dropped++
		c.remove(c.regions.at(id))
	}
	if n := c.held.overlapping(lo, hi); n > 0 {
		return fmt.Errorf("regcache: %d bytes are registered for %d operations: %w", len(mem), n, ErrInUse)
	}
	return nil
}

// Flush ends every registration except the fixed ones: now, or when it is released.
func (c *Cache) Flush() {
	for c.queue.last != nil {
		c.stats.Dropped++
		c.remove(c.queue.last)
	}
}

// Close ends every registration, in use or not, before the device is closed.
func (c *Cache) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.gens.stop()
	c.Flush()
	for c.fixed.last != nil {
		c.remove(c.fixed.last)
	}
	var errs []error
	inUse := c.held.all()
	c.held = held{}
	for _, r := range append(inUse, c.stuck...) {
		if err := c.dev.Deregister(r.whole()); err != nil {
			errs = append(errs, err)
		}
	}
	c.stuck, c.regions = nil, regions{}
	c.stats.Bytes, c.stats.Entries = 0, 0
	return errors.Join(errs...)
}
