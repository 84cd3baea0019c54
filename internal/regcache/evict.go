package regcache

// What ends a registration. A region that is in use never goes: it leaves the
// index, and ends when it is given back. The order in which regions go is that
// of their last use, nearly: see queue.go.

import (
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

const (
	// ageBatch bounds how many regions one call looks at because of their age.
	ageBatch = 16
	// slack is what a registration may lock beyond its bytes: a page at each end.
	slack = 2 * 4096
)

// trim evicts until so many more bytes and entries fit the limits, or nothing
// is left that may go.
func (c *Cache) trim(bytes int64, entries int) {
	for c.bytes+bytes > c.cfg.Bytes || c.queue.n+entries > c.cfg.Entries {
		if c.evictOne() == 0 {
			return
		}
	}
}

// makeRoom evicts regions of at least so many bytes, if there are as many. It is
// false if there was none.
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

// age ends regions that have not been used for some generations. It looks at a
// few of them; if there are more, aged stays behind and the next call goes on.
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

// Age lets regions go that have not been used for some garbage collections. Get
// does the same; Age is for a caller that has nothing to send, so that their
// memory is not kept all the same. It costs one load when there is nothing to
// do.
func (c *Cache) Age() {
	for g := c.gens.now(); g != c.aged; {
		c.age(g)
	}
}

// Generation is the number of the generation: see Config.Generation.
func (c *Cache) Generation() uint32 { return c.gens.now() }

// enqueue puts a new region, which is in use, where it may go one day.
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

// retire makes way for a region that overlaps r.
func (c *Cache) retire(r *region) {
	c.stats.Retired++
	c.remove(r)
}

// remove takes a region out of the index. It ends now, or when the last user
// gives it back.
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

// end deregisters. A device that refuses may still reach the memory, which is
// therefore kept.
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

// Drop ends every registration that touches mem: it is about to be unmapped, or
// to change its pages in another way that the runtime knows nothing of. If an
// operation still uses one, Drop returns ErrInUse, and mem must stay until that
// has ended.
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

// Flush ends every registration but the fixed ones: now, or when it is given
// back.
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
