package core

// Buffers of messages: an address, a count and a datatype.

import (
	"math"
	"sync"

	"github.com/muster-mpi/muster/internal/dtype"
)

// view returns count elements of a datatype at an address. The address may be MPI_BOTTOM:
// then the displacements of the datatype are addresses.
func (t *datatype) view(addr uintptr, count int) (dtype.View, error) {
	if !t.committed.Load() {
		return dtype.View{}, errorf(errType, "the datatype is not committed")
	}
	lo, hi, err := t.layout.Span(int64(count))
	if err != nil {
		return dtype.View{}, errorf(errCount, "%v", err)
	}
	if lo == hi {
		return t.layout.View(nil, 0, 0)
	}
	if addr == bottom && lo >= 0 && lo < math.MaxUint16 {
		return dtype.View{}, errorf(errBuffer, "the buffer is NULL and the message has %d elements", count)
	}
	mem := memory[byte](addr+uintptr(lo), int(hi-lo))
	return t.layout.View(mem, -lo, int64(count))
}

// plain returns the memory of elements that are contiguous from their origin, as those of
// nearly all messages, or nil if another path has to look.
func (t *datatype) plain(addr uintptr, count int) []byte {
	if t.flat == 0 || addr == bottom || count > math.MaxInt/t.flat || !t.committed.Load() {
		return nil
	}
	return memory[byte](addr, count*t.flat)
}

// outgoing returns the bytes of a message: the memory of the program, or a packed copy.
func (t *datatype) outgoing(addr uintptr, count int) ([]byte, error) {
	if b := t.plain(addr, count); b != nil {
		return b, nil
	}
	v, err := t.view(addr, count)
	if err != nil {
		return nil, err
	}
	if flat, ok := v.Contiguous(); ok {
		return flat, nil
	}
	packed := make([]byte, v.Len())
	v.Pack(packed, 0)
	return packed, nil
}

// scratch is memory for packed messages that calls use again: it is not zeroed each time, and
// its pages stay mapped.
type scratch struct{ pool sync.Pool }

// get returns memory for a message of n bytes, for put.
func (s *scratch) get(n int64) *[]byte {
	b, _ := s.pool.Get().(*[]byte)
	if b == nil || int64(cap(*b)) < n {
		b = new([]byte)
		*b = make([]byte, n)
	}
	*b = (*b)[:n]
	return b
}

// put takes memory back that nothing refers to any more.
func (s *scratch) put(b *[]byte) {
	if b != nil {
		s.pool.Put(b)
	}
}

// leaving is outgoing for calls that return when the message has left. A copy is in memory
// that the caller gives back if the call succeeds.
func (t *datatype) leaving(s *scratch, addr uintptr, count int) (b []byte, used *[]byte, err error) {
	if b := t.plain(addr, count); b != nil {
		return b, nil, nil
	}
	v, err := t.view(addr, count)
	if err != nil {
		return nil, nil, err
	}
	if flat, ok := v.Contiguous(); ok {
		return flat, nil, nil
	}
	used = s.get(v.Len())
	v.Pack(*used, 0)
	return *used, used, nil
}

// arriving is incoming for calls that return when the message is there. The caller gives
// back the memory after it has unpacked it.
func (t *datatype) arriving(s *scratch, addr uintptr, count int) (b []byte, l *landing, used *[]byte, err error) {
	if b := t.plain(addr, count); b != nil {
		return b, nil, nil, nil
	}
	v, err := t.view(addr, count)
	if err != nil {
		return nil, nil, nil, err
	}
	if flat, ok := v.Contiguous(); ok {
		return flat, nil, nil, nil
	}
	used = s.get(v.Len())
	return *used, &landing{view: v, packed: *used, elements: t.elements}, used, nil
}

// incoming returns the memory for a message, and what unpacks it into the buffer of the
// program, which is nil if the memory is that buffer.
func (t *datatype) incoming(addr uintptr, count int) ([]byte, *landing, error) {
	if b := t.plain(addr, count); b != nil {
		return b, nil, nil
	}
	v, err := t.view(addr, count)
	if err != nil {
		return nil, nil, err
	}
	if flat, ok := v.Contiguous(); ok {
		return flat, nil, nil
	}
	l := &landing{view: v, packed: make([]byte, v.Len()), elements: t.elements}
	return l.packed, l, nil
}

// landing is a message that must be unpacked when it is complete.
type landing struct {
	view     dtype.View
	packed   []byte
	elements *signature
}

// unpack stores the first n bytes of the message in the buffer of the program.
func (l *landing) unpack(n int) {
	if l != nil {
		l.view.Unpack(l.packed[:min(n, len(l.packed))], 0)
	}
}

// receive unpacks a message of n bytes that was received with error err. A message that ends
// inside of an element is an error, as in MPICH.
func (l *landing) receive(n int, err error) error {
	if l == nil {
		return err
	}
	l.unpack(n)
	if err != nil || l.elements == nil {
		return err
	}
	return l.elements.whole(n)
}

// whole returns an error if a message of n bytes ends inside of an element.
func (s *signature) whole(n int) error {
	if _, rest := s.elementsIn(int64(n)); rest != 0 {
		return errorf(errType, "the message of %d bytes ends inside of an element", n)
	}
	return nil
}
