package udrel

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Registered memory. A key consists of the index in a table, the lower 32 bits, and a
// secret that is drawn at random for each registration: one key reveals nothing about
// another (RFC 5042 section 6.1.1).

const maxRegions = 1 << 20

type region struct {
	mem    []byte
	base   uint64
	secret uint32
	access rdma.Access
	open   bool
	shown  int // responses that refer to it
}

type table struct {
	list   []*region
	free   []uint32
	random [256]byte // whose last left bytes are unused
	left   int
}

// draw returns a random number. It reads many from the system at a time.
func (t *table) draw() uint32 {
	if t.left < 4 {
		rand.Read(t.random[:]) // never fails: crypto/rand
		t.left = len(t.random)
	}
	t.left -= 4
	return binary.NativeEndian.Uint32(t.random[t.left:])
}

// Register makes memory accessible to peers.
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

// Deregister ends a registration. Responses that still read from it become refusals.
func (d *Device) Deregister(mr rdma.MR) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return rdma.ErrClosed
	}
	r := d.regions.find(mr.RKey)
	if r == nil {
		return fmt.Errorf("udrel: no region has the key %#x; it was deregistered before, or belongs to another device", mr.RKey)
	}
	d.guard.End(mr.RKey)
	slot := uint32(mr.RKey)
	if r.shown > 0 {
		for _, q := range d.pairs {
			if q != nil {
				q.refuseResponses(r)
			}
		}
		d.regions.list[slot] = new(region) // responses still refer to the old one
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

// reach returns the memory that an access may touch, and false if it is not allowed.
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
