package recvpool

// The pool; doc.go describes the states of a buffer.

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Config says what buffers to keep.
type Config struct {
	// Size is that of a buffer: the longest message that may come.
	Size int
	// Least buffers are always there; Most are there at the most. Least doubled so and so
	// often should be Most. 0: 64 and 1024.
	Least, Most int
	// Quiet is the time without a low watermark after which buffers that were not needed
	// meanwhile are given up. 0: 2 s.
	Quiet time.Duration
	// Post gives buffers to the device, as rdma.SRQ does.
	Post func([]rdma.RecvWR) (int, error)
	// Register and Deregister are those of a device that only writes into registered
	// memory; nil: it writes anywhere.
	Register   func([]byte) (rdma.MR, error)
	Deregister func(rdma.MR) error
}

const (
	least = 64
	most  = 1024
	quiet = 2 * time.Second
	// together is how many buffers that were given back are posted in one call, at most.
	together = 16
)

// Watermark is the rdma.SRQConfig.LowWater that fits: a quarter of the fewest buffers.
func (c *Config) Watermark() int {
	c.complete()
	return max(c.Least/4, 1)
}

// Depth is the rdma.SRQConfig.Depth that fits.
func (c *Config) Depth() int {
	c.complete()
	return c.Most
}

func (c *Config) complete() {
	if c.Least == 0 {
		c.Least = least
	}
	if c.Most == 0 {
		c.Most = max(most, c.Least)
	}
	if c.Quiet == 0 {
		c.Quiet = quiet
	}
}

// Pool is the buffers of one receive queue.
type Pool struct {
	cfg     Config
	slabs   []slab
	entries []entry  // by ID
	freeIDs []uint32 // of entries
	back    []uint32 // given back and not posted yet
	wrs     []rdma.RecvWR

	now     int // buffers that are posted, or with a reader, and stay
	burst   int // messages since the device was last empty
	peak    int // of that, since eased
	eased   time.Duration
	stats   Stats
	failure error // of a registration: the pool then stays as it is
}

// Stats are the counters of a pool.
type Stats struct {
	LowWater uint64 // times that the device ran low
	Grown    uint64 // times that more buffers were made
	Shrunk   uint64 // times that some were given up
	Now      int    // buffers
	Peak     int    // most that there ever were
	Bytes    uint64 // memory, those to be given up included
}

// slab is memory for some buffers.
type slab struct {
	mem      []byte
	mr       rdma.MR
	left     int // buffers of it that are not given up
	retiring bool
}

type entry struct {
	mem  []byte
	slab int32
	lkey uint32
}

// New makes a pool.
func New(c Config) (*Pool, error) {
	c.complete()
	if c.Size <= 0 || c.Least <= 0 || c.Most < c.Least || c.Post == nil {
		return nil, fmt.Errorf("recvpool: %d to %d buffers of %d bytes cannot be kept; Size and Least must be positive, Most not less than Least, and Post given", c.Least, c.Most, c.Size)
	}
	return &Pool{cfg: c}, nil
}

// Start posts the first buffers.
func (p *Pool) Start() error {
	if err := p.grow(p.cfg.Least); err != nil {
		return err
	}
	return p.flush()
}

// Buffer is the memory of a buffer.
func (p *Pool) Buffer(id uint64) []byte { return p.entries[id].mem }

// Took notes that a message has come.
func (p *Pool) Took() { p.burst++ }

// Return gives a buffer back when its message has been read.
func (p *Pool) Return(id uint64) {
	if p.back = append(p.back, uint32(id)); len(p.back) >= p.together() {
		_ = p.flush() // what the device does not take now is offered again
	}
}

// together is how many buffers wait for each other to be posted, few against those there.
func (p *Pool) together() int { return min(together, max(p.cfg.Least/8, 1)) }

// RanLow answers the low watermark.
func (p *Pool) RanLow(now time.Duration) {
	p.stats.LowWater++
	p.eased, p.peak = now, 0
	_ = p.flush()
	if more := min(p.now, p.cfg.Most-p.now); more > 0 && p.failure == nil {
		if p.failure = p.grow(more); p.failure == nil {
			p.stats.Grown++
			_ = p.flush()
		}
	}
}

// Drained notes that everything that came was taken: the device has all buffers but those
// that are being read. It gives up what was not needed for long.
func (p *Pool) Drained(now time.Duration) {
	if len(p.back) >= p.together() {
		_ = p.flush() // the device did not take them before
	}
	p.peak = max(p.peak, p.burst)
	p.burst = 0
	if p.now == p.cfg.Least || now-p.eased < p.cfg.Quiet {
		return
	}
	needed := p.peak + p.cfg.Watermark()
	p.eased, p.peak = now, 0
	if last := p.lastKept(); last > 0 && p.now-p.slabs[last].left >= max(needed, p.cfg.Least) {
		p.slabs[last].retiring = true
		p.now -= p.slabs[last].left
		p.stats.Shrunk++
	}
}

// Idle reports whether Drained has nothing to do for now.
func (p *Pool) Idle() bool { return len(p.back) < p.together() && p.now == p.cfg.Least }

// Stats reports what the pool holds and has done.
func (p *Pool) Stats() Stats {
	s := p.stats
	s.Now = p.now
	for i := range p.slabs {
		s.Bytes += uint64(len(p.slabs[i].mem))
	}
	return s
}

// Err is why the pool could not grow, nil if it could.
func (p *Pool) Err() error { return p.failure }

// Close gives the memory up. The queue must be closed.
func (p *Pool) Close() error {
	var err error
	for i := range p.slabs {
		err = errors.Join(err, p.free(i))
	}
	p.entries, p.back = nil, nil
	return err
}

// lastKept is the newest slab that stays, -1 if there is none.
func (p *Pool) lastKept() int {
	for i := len(p.slabs) - 1; i >= 0; i-- {
		if s := &p.slabs[i]; s.left > 0 && !s.retiring {
			return i
		}
	}
	return -1
}

// grow makes so many more buffers and puts them with those to be posted. A slab that is
// being given up is taken back first: part of it is still posted.
func (p *Pool) grow(count int) error {
	for i := range p.slabs {
		if s := &p.slabs[i]; s.retiring && s.left > 0 && s.left <= count {
			s.retiring = false
			p.now += s.left
			count -= s.left
		}
	}
	if count == 0 {
		p.stats.Peak = max(p.stats.Peak, p.now)
		return nil
	}
	s := slab{mem: make([]byte, count*p.cfg.Size), left: count}
	if p.cfg.Register != nil {
		var err error
		if s.mr, err = p.cfg.Register(s.mem); err != nil {
			return fmt.Errorf("recvpool: register %d receive buffers of %d bytes: %w", count, p.cfg.Size, err)
		}
	}
	at := p.addSlab(s)
	for i := range count {
		id := p.newID()
		p.entries[id] = entry{mem: s.mem[i*p.cfg.Size : (i+1)*p.cfg.Size : (i+1)*p.cfg.Size], slab: int32(at), lkey: s.mr.LKey}
		p.back = append(p.back, id)
	}
	p.now += count
	p.stats.Peak = max(p.stats.Peak, p.now)
	return nil
}

// place puts a slab where one was given up, or behind the others.
func (p *Pool) addSlab(s slab) int {
	for i := range p.slabs {
		if p.slabs[i].mem == nil {
			p.slabs[i] = s
			return i
		}
	}
	p.slabs = append(p.slabs, s)
	return len(p.slabs) - 1
}

func (p *Pool) newID() uint32 {
	if n := len(p.freeIDs); n > 0 {
		id := p.freeIDs[n-1]
		p.freeIDs = p.freeIDs[:n-1]
		return id
	}
	p.entries = append(p.entries, entry{})
	return uint32(len(p.entries) - 1)
}

// flush posts what was given back, or gives it up. What the device does not take stays.
func (p *Pool) flush() error {
	p.wrs = p.wrs[:0]
	kept := p.back[:0]
	for _, id := range p.back {
		e := &p.entries[id]
		if p.slabs[e.slab].retiring {
			p.giveUp(id)
			continue
		}
		kept = append(kept, id)
		p.wrs = append(p.wrs, rdma.RecvWR{ID: uint64(id), Body: rdma.MemOf(e.mem), LKey: e.lkey})
	}
	p.back = kept
	if len(kept) == 0 {
		return nil
	}
	n, err := p.cfg.Post(p.wrs)
	p.back = p.back[:copy(p.back, p.back[n:])]
	clear(p.wrs)
	if errors.Is(err, rdma.ErrAgain) {
		err = nil
	}
	return err
}

// giveUp forgets a buffer, and its slab with the last one.
func (p *Pool) giveUp(id uint32) {
	at := int(p.entries[id].slab)
	p.entries[id] = entry{}
	p.freeIDs = append(p.freeIDs, id)
	if s := &p.slabs[at]; s.left > 1 {
		s.left--
		return
	}
	_ = p.free(at) // an end of a registration that fails leaves it to the device's Close
}

func (p *Pool) free(at int) (err error) {
	s := &p.slabs[at]
	if s.mem != nil && p.cfg.Deregister != nil {
		err = p.cfg.Deregister(s.mr)
	}
	*s = slab{}
	return err
}
