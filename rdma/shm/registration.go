package shm

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/muster-mpi/muster/rdma"
)

// Registrations are stored in the owner's segment, where an origin checks them before it
// accesses the memory: there is no round trip, and the owner need not be in the library. A
// key consists of a slot number and a generation that is never repeated, so the key of an
// ended registration matches nothing.
//
// The order of stores and loads makes a slot consistent without a lock: the owner clears
// the key first and sets it last, the origin reads it first and last.

const (
	keySlotBits = 16
	keySlotMask = 1<<keySlotBits - 1
)

type registrations struct {
	seg   *segment
	free  []uint32 // used before fresh ones, last in first out: few pages are touched
	limbo []uint32 // deregistered, but a peer still uses a copy, see cooperative.go
	fresh uint32   // slots from here on were never used
	next  uint64   // generation
}

func newRegistrations(s *segment) registrations {
	s.regions = make([]atomic.Pointer[[slotsPerChunk]region], (s.geo.slots+slotsPerChunk-1)/slotsPerChunk)
	// A random start invalidates the keys of an earlier owner of the index.
	return registrations{seg: s, next: rand.Uint64() >> (keySlotBits + 1)}
}

// Register makes mem accessible to peers.
func (d *Device) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	if d.closed {
		return rdma.MR{}, rdma.ErrClosed
	}
	mr, err := d.regs.register(rdma.MemOf(mem), acc)
	if err == nil && d.regs.assisted(mr.RKey) {
		d.mu.Lock()
		d.copies.offerHelp(d, mr.RKey)
		d.mu.Unlock()
	}
	return mr, err
}

func (r *registrations) register(mem rdma.Mem, acc rdma.Access) (rdma.MR, error) {
	i, ok := r.take()
	if !ok {
		return rdma.MR{}, fmt.Errorf("shm: all %d registrations are in use: %w", r.seg.geo.slots, rdma.ErrNoResources)
	}
	s := r.seg.slot(int(i))
	r.next++
	mr := rdma.MR{Base: mem.Addr(), Len: uint64(mem.Len()), RKey: r.next<<keySlotBits | uint64(i)}
	own := r.seg.region(int(i))
	if mem.Len() > 0 {
		own.start.Store(&mem.Bytes()[0])
	}
	own.base.Publish(mr.Base)
	own.size.Publish(mr.Len)
	own.rights.Publish(uint64(acc))
	own.key.Publish(mr.RKey)
	s.base.Publish(mr.Base)
	s.size.Publish(mr.Len)
	s.rights.Publish(uint64(acc))
	s.key.Publish(mr.RKey)
	return mr, nil
}

// take returns a free slot.
func (r *registrations) take() (uint32, bool) {
	if len(r.limbo) > 0 {
		r.reclaim()
	}
	if n := len(r.free); n > 0 {
		i := r.free[n-1]
		r.free = r.free[:n-1]
		return i, true
	}
	if r.fresh == r.seg.geo.slots {
		return 0, false
	}
	i := r.fresh
	r.fresh++
	if i%slotsPerChunk == 0 {
		r.seg.regions[i/slotsPerChunk].Store(new([slotsPerChunk]region))
		if r.seg.heap {
			r.seg.slotChunks[i/slotsPerChunk].Store(new([slotsPerChunk]slot))
		}
	}
	return i, true
}

// reclaim frees the oldest slot in limbo, if its copy has ended.
func (r *registrations) reclaim() {
	if i := r.limbo[0]; r.seg.slot(int(i)).pull.abandon() {
		r.limbo = append(r.limbo[:0], r.limbo[1:]...)
		r.free = append(r.free, i)
	}
}

// Deregister ends a registration. A copy that a peer has begun is aborted at its next
// piece, and an unanswered OpPush is flushed.
func (d *Device) Deregister(mr rdma.MR) error {
	assisted := d.regs.assisted(mr.RKey)
	err := d.regs.deregister(mr.RKey)
	if (assisted || len(d.copies.offered) != 0) && err == nil {
		d.mu.Lock()
		if assisted {
			d.copies.endHelp(mr.RKey)
		} else {
			d.copies.withdraw(d, mr.RKey)
		}
		d.mu.Unlock()
	}
	return err
}

// assisted reports whether a registration has an internal transfer, see assisted.go.
func (r *registrations) assisted(key uint64) bool {
	i := uint32(key & keySlotMask)
	if i >= r.fresh {
		return false
	}
	own := r.seg.region(int(i))
	const need = rdma.Assisted | rdma.RemoteWrite
	return rdma.Access(own.rights.Load())&need == need && own.size.Load() >= assistFrom && own.key.Load() == key
}

func (r *registrations) deregister(key uint64) error {
	i := uint32(key & keySlotMask)
	if i >= r.fresh || key == 0 || r.seg.region(int(i)).key.Load() != key {
		return fmt.Errorf("shm: no registration has the key %#x; it was deregistered before, or belongs to another device", key)
	}
	s, own := r.seg.slot(int(i)), r.seg.region(int(i))
	own.key.Publish(0)
	// The fence orders this before the check of the copy: either the puller sees that the
	// key is gone or we see that the copy has begun.
	s.key.PublishFenced(0)
	own.start.Store(nil)
	if s.pull.abandon() {
		r.free = append(r.free, i)
	} else {
		r.limbo = append(r.limbo, i)
	}
	return nil
}

// endAll ends every registration when the device closes.
func (r *registrations) endAll() {
	for i := range int(r.fresh) {
		if s := r.seg.slot(i); s.key.Load() != 0 {
			s.key.PublishFenced(0)
			s.pull.abandon()
		}
	}
	clear(r.seg.regions)
	r.fresh = 0
}

// access returns the slot of a key if it permits the needed access to n bytes at addr.
// nil: refused.
func (s *segment) access(key, addr, n uint64, need rdma.Access) *slot {
	i := int(key & keySlotMask)
	if key == 0 || i >= int(s.geo.slots) {
		return nil
	}
	sl := s.slot(i)
	if sl == nil || sl.key.Load() != key {
		return nil
	}
	base, size, rights := sl.base.Load(), sl.size.Load(), rdma.Access(sl.rights.Load())
	if rights&need == 0 || addr < base || n > size || addr-base > size-n || sl.key.Load() != key {
		return nil
	}
	return sl
}

// baseOf returns the base address of a key, 0 if there is no such key.
func (s *segment) baseOf(key uint64) uint64 {
	if i := int(key & keySlotMask); i < int(s.geo.slots) {
		if sl := s.slot(i); sl != nil {
			return sl.base.Load()
		}
	}
	return 0
}

// memory is access for an owner in this process: it returns the bytes themselves. It uses
// the owner's record and not the slot, see region.
func (s *segment) memory(key, addr, n uint64, need rdma.Access) ([]byte, bool) {
	own := s.region(int(key & keySlotMask))
	if key == 0 || own == nil || own.key.Load() != key {
		return nil, false
	}
	base, size, rights, start := own.base.Load(), own.size.Load(), rdma.Access(own.rights.Load()), own.start.Load()
	if rights&need == 0 || addr < base || n > size || addr-base > size-n || own.key.Load() != key {
		return nil, false
	}
	if start == nil {
		return nil, n == 0
	}
	return sliceAt(start, size)[addr-base:][:n], true
}
