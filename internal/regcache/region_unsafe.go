package regcache

import (
	"unsafe"

	"github.com/muster-mpi/muster/rdma"
)

// region is one registration. The fields of a hit come first, and fit one cache line.
type region struct {
	lo, hi   uint64 // local addresses
	base     uint64 // address of lo for peers
	rkey     uint64
	id       uint32 // never 0, never changes
	lkey     uint32
	acc      rdma.Access
	location location
	refs     int32  // uses that have not been released
	gen      uint32 // generation of the last use
	used     uint64 // number of the last use

	queued     uint64 // number of uses when it was last queued
	queuedGen  uint32 // generation when it was last queued
	prev, next *region
	mem        rdma.Mem // keeps the memory alive
	_          [16]byte // pads it to two cache lines
}

// location is where a region is kept.
type location uint8

const (
	outside location = iota // not in the index: deregistered when released
	inQueue
	inFixed
)

func (r *region) set(mem []byte, acc rdma.Access, mr rdma.MR) {
	m := rdma.MemOf(mem)
	*r = region{
		id: r.id, lo: m.Addr(), hi: m.Addr() + uint64(m.Len()), base: mr.Base, rkey: mr.RKey, lkey: mr.LKey,
		acc: acc, mem: m,
	}
}

// whole returns the region as the device registered it.
func (r *region) whole() rdma.MR {
	return rdma.MR{Base: r.base, Len: r.hi - r.lo, RKey: r.rkey, LKey: r.lkey}
}

// part returns a part of the region.
func (r *region) part(lo, size uint64) rdma.MR {
	return rdma.MR{Base: r.base + (lo - r.lo), Len: size, RKey: r.rkey, LKey: r.lkey}
}

// union returns the smallest slice that holds a and b, which overlap. Two slices with a
// common byte lie in one object, or in memory that is not the runtime's, so the bytes
// between their ends are valid.
func union(a, b []byte) []byte {
	first, last := a, b
	if rdma.MemOf(b).Addr() < rdma.MemOf(a).Addr() {
		first, last = b, a
	}
	size := int(rdma.MemOf(last).Addr()-rdma.MemOf(first).Addr()) + len(last)
	return unsafe.Slice(unsafe.SliceData(first), max(size, len(first)))
}
