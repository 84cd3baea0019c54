package rail

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Registered memory. This package places what arrives itself, so one key is valid on
// all rails and nothing is registered with their devices.
//
// A key has 64 bits: 20 for the index in the table and 44 random ones, drawn anew each
// time, so that a key cannot be guessed and an old one is invalid (RFC 5042 section
// 6.1.1).

const (
	indexBits  = 20
	maxRegions = 1 << indexBits
	// reuseAfter is how many entries must be free before the first of them is reused.
	reuseAfter = 64
)

type region struct {
	mem  rdma.Mem
	key  uint64 // 0: the entry is free
	next int32  // of the free list
	acc  rdma.Access
}

// regions is a table of them. The free entries are a queue.
type regions struct {
	list        []region
	first, last int32 // of the free places, as index+1; 0: none
	free        int
	random      [512]byte
	drawn       int
}

// draw returns random bits. It reads many from the system at a time.
func (t *regions) draw() (uint64, error) {
	if t.drawn == 0 || t.drawn+8 > len(t.random) {
		if _, err := rand.Read(t.random[:]); err != nil {
			return 0, fmt.Errorf("rail: no random number for a key: %w; check the system's random source", err)
		}
		t.drawn = 0
	}
	v := binary.LittleEndian.Uint64(t.random[t.drawn:])
	t.drawn += 8
	return v, nil
}

// register registers memory under a new key.
func (t *regions) register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	bits, err := t.draw()
	if err != nil {
		return rdma.MR{}, err
	}
	index := int32(len(t.list))
	switch {
	case t.free > reuseAfter || t.free > 0 && len(t.list) == maxRegions:
		index = t.first - 1
		t.first = t.list[index].next
		t.free--
	case len(t.list) == maxRegions:
		return rdma.MR{}, fmt.Errorf("rail: all %d places for registered memory are in use; deregister something first: %w", maxRegions, rdma.ErrNoResources)
	default:
		t.list = append(t.list, region{})
	}
	key := (bits|1<<63)&^(maxRegions-1) | uint64(index) // the highest bit is set, so that no key is 0
	m := rdma.MemOf(mem)
	t.list[index] = region{mem: m, key: key, acc: acc}
	return rdma.MR{Base: m.Addr(), Len: uint64(len(mem)), RKey: key, LKey: uint32(index)}, nil
}

// find returns the region of a key, nil if there is none.
func (t *regions) find(key uint64) *region {
	index := key & (maxRegions - 1)
	if key == 0 || index >= uint64(len(t.list)) || t.list[index].key != key {
		return nil
	}
	return &t.list[index]
}

// deregister ends a registration.
func (t *regions) deregister(mr rdma.MR) error {
	r := t.find(mr.RKey)
	if r == nil {
		return fmt.Errorf("rail: no region is registered with the key %#x; it may have been deregistered before", mr.RKey)
	}
	index := int32(mr.RKey & (maxRegions - 1))
	*r = region{}
	if t.free == 0 {
		t.first = index + 1
	} else {
		t.list[t.last-1].next = index + 1
	}
	t.last = index + 1
	t.free++
	return nil
}

// reach returns a part of a region if the whole access of total bytes at address is
// allowed; otherwise no byte may move. A zero-length access is not checked (RFC 5040
// sections 5.1 and 5.2).
func (t *regions) reach(key, address, total, offset uint64, n int, need rdma.Access) ([]byte, bool) {
	if total == 0 {
		return nil, n == 0
	}
	r := t.find(key)
	if r == nil || r.acc&need != need {
		return nil, false
	}
	at, size := address-r.mem.Addr(), uint64(r.mem.Len()) // below the start it wraps and is too large
	if at > size || total > size-at || offset > total || uint64(n) > total-offset {
		return nil, false
	}
	lo := at + offset
	return r.mem.Bytes()[lo : lo+uint64(n)], true
}
