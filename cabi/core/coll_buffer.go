package core

// Buffers of collectives: contiguous ones are used where they are, of others package mpi
// gets packed copies.

import "github.com/muster-mpi/muster/internal/dtype"

// use is what a call does with a buffer.
type use int

const (
	reads  use = 1
	writes use = 2
)

// empty returns a buffer without data. A nil slice would mean that the call is in place.
func empty() []byte { return []byte{} }

// buffer returns the memory for n blocks of count elements of a datatype, which are at the
// positions addr, count and typ of the arguments. Block i begins i*count elements after the
// first, so n blocks are one of n*count elements.
func (x *collCall) buffer(u use, addr, count, typ, n int) []byte {
	a := x.a
	elems, t := a.count(count), a.datatype(typ)
	if a.err != nil {
		return nil
	}
	return x.elements(u, t, a.addr(addr), elems*n)
}

// elements returns the memory for a number of elements.
func (x *collCall) elements(u use, t *datatype, addr uintptr, count int) []byte {
	v := x.view(t, addr, count)
	if flat, ok := v.Contiguous(); ok {
		if len(flat) == 0 {
			return empty()
		}
		return flat
	}
	packed := make([]byte, v.Len())
	x.copies(u, v, packed)
	return packed
}

func (x *collCall) view(t *datatype, addr uintptr, count int) dtype.View {
	if addr == inPlace {
		x.a.fail(errorf(errBuffer, "MPI_IN_PLACE is not allowed for this buffer"))
		return dtype.View{}
	}
	v, err := t.view(addr, count)
	if err != nil {
		x.a.fail(err)
	}
	return v
}

// copies makes the call pack a view before it and unpack it afterwards.
func (x *collCall) copies(u use, v dtype.View, packed []byte) {
	if u&reads != 0 {
		x.pack = append(x.pack, func() { v.Pack(packed, 0) })
	}
	if u&writes != 0 {
		x.unpack = append(x.unpack, func() { v.Unpack(packed, 0) })
	}
}

// block is a block of a buffer whose blocks differ.
type block struct {
	t     *datatype
	addr  uintptr
	count int
}

// vector decodes the blocks of a buffer with counts and displacements in elements of one
// datatype. The positions are those of the arguments.
func (x *collCall) vector(addr, counts, displs, typ, n int) []block {
	a := x.a
	t := a.datatype(typ)
	if a.err != nil {
		return nil
	}
	ns, ds := x.counts(counts, n), a.ints(displs, n)
	if n > 0 && (ns == nil || ds == nil) {
		a.fail(errorf(errArg, "the counts or displacements are NULL"))
	}
	if a.err != nil {
		return nil
	}
	out := make([]block, n)
	for i := range out {
		out[i] = block{t, a.addr(addr) + uintptr(ds[i]*int(t.layout.Extent())), ns[i]}
		if a.addr(addr) == inPlace {
			out[i].addr = inPlace
		}
	}
	return out
}

// various decodes the blocks of a buffer with datatypes that differ and displacements in
// bytes.
func (x *collCall) various(addr, counts int, displs []int, types, n int) []block {
	a := x.a
	ns := x.counts(counts, n)
	if n > 0 && (ns == nil || displs == nil || a.addr(types) == 0) {
		a.fail(errorf(errArg, "the counts, displacements or datatypes are NULL"))
	}
	if a.err != nil {
		return nil
	}
	out := make([]block, n)
	for i, h := range a.handles(types, n).all() {
		if ns[i] == 0 {
			continue // the datatype need not be valid
		}
		t, err := a.p.datatype(h)
		if err != nil {
			a.fail(err)
			return nil
		}
		out[i] = block{t, a.addr(addr) + uintptr(displs[i]), ns[i]}
	}
	return out
}

// counts decodes counts, none of which may be negative.
func (x *collCall) counts(i, n int) []int {
	out := x.a.ints(i, n)
	for _, v := range out {
		if v < 0 {
			x.a.fail(errorf(errCount, "a count is %d", v))
		}
	}
	return out
}

// farthest is the largest distance of blocks that are used as parts of one piece of memory.
const farthest = 1 << 40

// blocks returns memory for all blocks, and the length and offset of each in it, in bytes.
// The memory is that of the program if all blocks are contiguous.
func (x *collCall) blocks(u use, list []block) (mem []byte, lens, offs []int) {
	if x.a.err != nil {
		return nil, nil, nil
	}
	lens, offs = make([]int, len(list)), make([]int, len(list))
	views := make([]dtype.View, len(list))
	lo, hi, flat, total := ^uintptr(0), uintptr(0), true, 0
	for i, b := range list {
		if b.count == 0 {
			continue
		}
		views[i] = x.view(b.t, b.addr, b.count)
		lens[i] = int(views[i].Len())
		total += lens[i]
		if m, ok := views[i].Contiguous(); !ok {
			flat = false
		} else if len(m) > 0 {
			lo, hi = min(lo, addressOf(m)), max(hi, addressOf(m)+uintptr(len(m)))
		}
	}
	switch {
	case x.a.err != nil || total == 0:
		return empty(), lens, offs
	case flat && hi-lo < farthest:
		for i := range list {
			if m, _ := views[i].Contiguous(); len(m) > 0 {
				offs[i] = int(addressOf(m) - lo)
			}
		}
		return memory[byte](lo, int(hi-lo)), lens, offs
	}
	mem = make([]byte, total)
	at := 0
	for i := range list {
		offs[i] = at
		if lens[i] > 0 {
			x.copies(u, views[i], mem[at:at+lens[i]])
		}
		at += lens[i]
	}
	return mem, lens, offs
}
