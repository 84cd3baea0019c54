package ddp

import (
	"reflect"

	"github.com/muster-mpi/muster/rdma"
)

// The owner's own use of regions, in the strict mode of a device: send and receive buffers
// must lie in a region whose tag the request names, as with adapters (RFC 5040 section 2.1
// leaves the local interface to the implementation).

// Holds reports whether memory lies in the region of a tag.
func (t *Table) Holds(tag Tag, mem rdma.Mem) bool {
	i := t.find(tag)
	if i < 0 {
		return false
	}
	r := &t.slots[i].region.Mem
	lo, n := r.Addr(), uint64(r.Len())
	off := mem.Addr() - lo // an address below wraps and is too large
	return off <= n && uint64(mem.Len()) <= n-off
}

// MemoryOf returns the memory of a region, empty if there is no such tag.
func (t *Table) MemoryOf(tag Tag) rdma.Mem {
	if i := t.find(tag); i >= 0 {
		return t.slots[i].region.Mem
	}
	return rdma.Mem{}
}

// EachMemory visits the memory of every region.
func (t *Table) EachMemory(visit func(rdma.Mem)) {
	for i := range t.slots {
		if t.slots[i].tag != 0 {
			visit(t.slots[i].region.Mem)
		}
	}
}

// Memory returns the size of the table.
func (t *Table) Memory() uint64 { return uint64(len(t.slots)) * uint64(reflect.TypeFor[slot]().Size()) }
