package udrel

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Registered memory. A key is the place in a table, the lower 32 bits, and a number that is
// drawn at random for each registration: who knows one key learns nothing about another
// (RFC 5042 section 6.1.1).

const maxRegions = 1 << 20

type region struct {
	mem    []byte
	base   uint64
	secret uint32
	access rdma.Access
	open   bool
	shown  int // answers that show it
}

type table struct {
	list   []*region
	free   []uint32
	random [256]byte // of which the last left bytes are not used yet
	left   int
}

// draw gives a random number. The system is asked for many at a time.
func (t *table) draw() uint32 {
	if t.left < 4 {
		rand.Read(t.random[:]) // never fails: crypto/rand
		t.left = len(t.random)
	}
	t.left -= 4
	return binary.NativeEndian.Uint32(t.random[t.left:])
}

// Register lets peers reach memory.
func (d *Device) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &d.regions
	if d.closed {
		return rdma.MR{}, rdma.ErrClosed
	}
	var slot uint32
	if n := len(t.free); n == 0 {
		if len(t.list) == maxRegions {
			return rdma.MR{}, fmt.Errorf("udrel: %d regions are registered: %w", maxRegions, rdma.ErrNoResources)
		}
		slot = uint32(len(t.list))
		t.list = append(t.list, new(region))
	} else {
		slot = t.free[n-1]
		t.free = t.free[:n-1]
	}
	r := t.list[slot]
	*r = region{mem: mem, base: rdma.MemOf(mem).Addr(), secret: t.draw(), access: acc, open: true}
	return rdma.MR{Base: r.base, Len: uint64(len(mem)), RKey: uint64(r.secret)<<32 | uint64(slot), LKey: slot + 1}, nil
}

// Deregister ends a registration. What is being answered from it is refused from now on.
func (d *Device) Deregister(mr rdma.MR) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return rdma.ErrClosed
	}
	r := d.regions.find(mr.RKey)
	if r == nil {
		return fmt.Errorf("udrel: no region has the key %#x; it was ended before, or is of another device", mr.RKey)
	}
	d.guard.End(mr.RKey)
	slot := uint32(mr.RKey)
	if r.shown > 0 {
		for _, q := range d.pairs {
			if q != nil {
				q.refuseResponses(r)
			}
		}
		d.regions.list[slot] = new(region) // the old one is still named by answers
	} else {
		*r = region{}
	}
	d.regions.free = append(d.regions.free, slot)
	return nil
}

func (t *table) find(key uint64) *region {
	slot := uint32(key)
	if uint64(slot) >= uint64(len(t.list)) || !t.list[slot].open || uint64(t.list[slot].secret) != key>>32 {
		return nil
	}
	return t.list[slot]
}

// reach is the memory that an access may touch, nil and false if it may not.
func (t *table) reach(p target, right rdma.Access) (*region, []byte, bool) {
	r := t.find(p.key)
	if r == nil || r.access&right == 0 || p.address < r.base {
		return nil, nil, false
	}
	at := p.address - r.base
	if at > uint64(len(r.mem)) || uint64(p.length) > uint64(len(r.mem))-at {
		return nil, nil, false
	}
	return r, r.mem[at : at+uint64(p.length)], true
}
