package recvpool

// The pool; doc.go describes the states of a buffer.

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Config configures a Pool.
type Config struct {
	// Size is the size of a buffer: the longest possible message.
	Size int
	// Least and Most bound the number of buffers. Most should be Least times a power of
	// two. Defaults: 64 and 1024.
	Least, Most int
	// Quiet is the time without a low watermark after which unneeded buffers are freed.
	// Default 2 s.
	Quiet time.Duration
	// Post posts buffers to the device, like rdma.SRQ.PostRecv.
	Post func([]rdma.RecvWR) (int, error)
	// Register and Deregister are those of a device that writes only into registered
	// memory; nil: it writes anywhere.
	Register   func([]byte) (rdma.MR, error)
	Deregister func(rdma.MR) error
}

const (
	least = 64
	most  = 1024
	quiet = 2 * time.Second
	// together bounds how many returned buffers are posted in one call.
	together = 16
)

// Watermark returns the matching rdma.SRQConfig.LowWater: a quarter of Least.
func (c *Config) Watermark() int {
	c.complete()
	return max(c.Least/4, 1)
}

// Depth returns the matching rdma.SRQConfig.Depth.
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

// Pool holds the buffers of one receive queue.
type Pool struct {
	cfg     Config
	slabs   []slab
	entries []entry  // by ID
	freeIDs []uint32 // free indexes of entries
	back    []uint32 // returned and not posted yet
	wrs     []rdma.RecvWR

	now     int // buffers that are posted or being read, without those to be freed
	burst   int // messages since the device was last empty
	peak    int // greatest burst since eased
	eased   time.Duration
	stats   Stats
	failure error // error of a registration: the pool no longer grows
}

// Stats are the counters of a pool.
type Stats struct {
	LowWater uint64 // low watermark events
	Grown    uint64 // times that buffers were added
	Shrunk   uint64 // times that buffers were removed
	Now      int    // buffers
	Peak     int    // greatest number of buffers
	Bytes    uint64 // memory, including buffers to be freed
}

// slab is memory for several buffers.
type slab struct {
	mem      []byte
	mr       rdma.MR
	left     int // buffers not freed yet
	retiring bool
}

type entry struct {
	mem  []byte
	slab int32
	lkey uint32
}

// New returns a pool without buffers.
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

// Buffer returns the memory of a buffer.
func (p *Pool) Buffer(id uint64) []byte { return p.entries[id].mem }

// Took counts an arrived message.
func (p *Pool) Took() { p.burst++ }

// Return returns a buffer when its message has been read.
func (p *Pool) Return(id uint64) {
	if p.back = append(p.back, uint32(id)); len(p.back) >= p.together() {
		_ = p.flush() // what the device does not accept now is posted later
	}
}

// together returns how many returned buffers are collected before they are posted: few
// compared to those in use.
func (p *Pool) together() int { return min(together, max(p.cfg.Least/8, 1)) }

// RanLow handles a low watermark event.
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

// RecordDrained reports that all arrived messages were taken: the device has all buffers except
// those being read. It frees buffers that were not needed for long.
func (p *Pool) RecordDrained(now time.Duration) {
	if len(p.back) >= p.together() {
		_ = p.flush() // the device did not accept them before
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

// Idle reports whether RecordDrained has nothing to do for now.
func (p *Pool) Idle() bool { return len(p.back) < p.together() && p.now == p.cfg.Least }

// Stats returns the counters of the pool.
func (p *Pool) Stats() Stats {
	s := p.stats
	s.Now = p.now
	for i := range p.slabs {
		s.Bytes += uint64(len(p.slabs[i].mem))
	}
	return s
}

// Err returns why the pool could not grow, or nil.
func (p *Pool) Err() error { return p.failure }

// Close frees the memory. The queue must be closed.
func (p *Pool) Close() error {
	var err error
	for i := range p.slabs {
		err = errors.Join(err, p.free(i))
	}
	p.entries, p.back = nil, nil
	return err
}

// lastKept returns the index of the newest slab that is not retiring, or -1.
func (p *Pool) lastKept() int {
	for i := len(p.slabs) - 1; i >= 0; i-- {
		if s := &p.slabs[i]; s.left > 0 && !s.retiring {
			return i
		}
	}
	return -1
}

// grow adds so many buffers to those to be posted. It first reactivates retiring slabs:
// part of their buffers is still posted.
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

// addSlab stores a slab in a free index, or appends it.
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

// flush posts returned buffers, or frees them. What the device does not accept stays.
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

// giveUp frees a buffer, and its slab with the last one.
func (p *Pool) giveUp(id uint32) {
	at := int(p.entries[id].slab)
	p.entries[id] = entry{}
	p.freeIDs = append(p.freeIDs, id)
	if s := &p.slabs[at]; s.left > 1 {
		s.left--
		return
	}
	_ = p.free(at) // if deregistering fails, the device's Close ends the registration
}

func (p *Pool) free(at int) (err error) {
	s := &p.slabs[at]
	if s.mem != nil && p.cfg.Deregister != nil {
		err = p.cfg.Deregister(s.mr)
	}
	*s = slab{}
	return err
}
