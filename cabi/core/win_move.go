package core

// Put and get (MPI-4.1 sections 12.3.2, 12.3.3 and 12.3.5). Both sides of an access may have
// datatypes with gaps; it is made in pieces that are contiguous on both.

import (
	"math"

	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/mpi"
)

func accesses() map[string]handler {
	return map[string]handler{
		"Put":  move(cbinding.Win.PutBytes, false),
		"Get":  move(cbinding.Win.GetBytes, false),
		"Rput": move(cbinding.Win.PutBytes, true),
		"Rget": move(cbinding.Win.GetBytes, true),
	}
}

// winBuffer is a buffer of the program: an address, a count and a datatype.
type winBuffer struct {
	addr  uintptr
	count int
	typ   *datatype
}

// winBuffer returns the buffer whose address is parameter i.
func (a *args) winBuffer(i int) winBuffer {
	return winBuffer{addr: a.addr(i), count: a.count(i + 1), typ: a.committedType(i + 2)}
}

// committedType returns a datatype that may be used for communication.
func (a *args) committedType(i int) *datatype {
	t := a.datatype(i)
	if t != nil && !t.committed.Load() {
		a.fail(errorf(errType, "the datatype is not committed"))
	}
	return t
}

// targetMemory is memory of a target.
type targetMemory struct {
	w     *win
	rank  int
	disp  int // in bytes
	count int
	typ   *datatype
}

// target returns the target whose rank is parameter i: rank, displacement, count, datatype.
func (a *args) target(i, win int) targetMemory {
	w := a.win(win)
	t := targetMemory{w: w, count: a.count(i + 2), typ: a.committedType(i + 3)}
	a.locate(&t, i)
	return t
}

// locate sets the rank and displacement of a target. Errors are reported in the order of
// MPICH: those of arguments before those of epochs.
func (a *args) locate(t *targetMemory, i int) {
	if t.rank = a.int(i); a.err != nil || t.rank == procNull {
		return
	}
	if t.rank < 0 || t.rank >= len(t.w.units) {
		a.fail(errorf(errRank, "rank %d is not one of 0 to %d", t.rank, len(t.w.units)-1))
		return
	}
	t.disp = a.int(i+1) * t.w.units[t.rank]
	if t.disp < 0 && t.w.flavor != flavorDynamic {
		a.fail(errorf(errDisp, "the displacement is %d", a.int(i+1)))
	}
}

// begin begins the accesses of a call, with or without a request.
func (t *targetMemory) begin(name string, requested bool) (cbinding.Access, error) {
	if requested {
		return t.w.bytes.BeginRequest(name, t.rank)
	}
	if !t.w.bytes.Open(t.rank) {
		return cbinding.Access{}, errorf(errRMASync, "rank %d may not be accessed now: begin an epoch first", t.rank)
	}
	return cbinding.Access{Name: name}, nil
}

// move returns the handler of a put or get: origin, target, window and perhaps a request.
func move(do func(cbinding.Win, cbinding.Access, []byte, int, int) error, requested bool) handler {
	return func(p *Process, a *args) error {
		origin, to := a.winBuffer(0), a.target(3, 7)
		if a.err != nil {
			return a.err
		}
		return p.access(a, &to, requested, 8, func(t cbinding.Access) error {
			var near, far [1]span
			from, err := origin.spans(near[:0], nil)
			if err != nil {
				return err
			}
			at := spans(far[:0], to.typ.layout, to.count, nil)
			for i, j := (cursor{list: from}), (cursor{list: at}); ; {
				n := min(i.rest(), j.rest())
				if n == 0 {
					return nil
				}
				if err := do(to.w.bytes, t, memory[byte](origin.addr+uintptr(i.take(n)), int(n)), to.rank, to.disp+int(j.take(n))); err != nil {
					return err
				}
			}
		})
	}
}

// access makes the accesses of a call, and stores its request as parameter i if it has one.
func (p *Process) access(a *args, to *targetMemory, requested bool, i int, do func(cbinding.Access) error) error {
	r := &request{owner: to.w, send: true}
	if to.rank != procNull {
		t, err := to.begin(a.name, requested)
		if err != nil {
			return err
		}
		if err := do(t); err != nil {
			return err
		}
		if requested {
			r.Request = to.w.bytes.Request(t).(mpi.Request)
		}
	}
	if requested {
		a.setHandle(i, p.requests.add(r))
	}
	return nil
}

// span is contiguous memory: its offset and length.
type span struct{ at, n int64 }

// spans returns the memory of count elements of a layout, appended to an empty slice. With
// elements that have gaps, which are predefined pairs, a span has the gaps too: its length
// is a multiple of the extent of an element.
func spans(list []span, l *dtype.Layout, count int, element *dtype.Layout) []span {
	if count == 0 || l.Size() == 0 {
		return list
	}
	gaps := element != nil && element.Size() != element.Extent()
	if !gaps && l.IsContiguous() {
		return append(list, span{l.TrueLowerBound(), int64(count) * l.Size()})
	}
	if !gaps {
		for at, n := range l.Segments(int64(count)) {
			list = append(list, span{at, n})
		}
		return list
	}
	size, extent := element.Size(), element.Extent()
	in := int64(0) // the position in an element
	for at, n := range l.Segments(int64(count)) {
		for n > 0 {
			step := min(n, size-in)
			if in == 0 {
				if k := len(list) - 1; k >= 0 && list[k].at+list[k].n == at {
					list[k].n += extent
				} else {
					list = append(list, span{at, extent})
				}
			}
			at, n, in = at+step, n-step, (in+step)%size
		}
	}
	return list
}

// spans returns the memory of a buffer, relative to its address.
func (b *winBuffer) spans(list []span, element *dtype.Layout) ([]span, error) {
	list = spans(list, b.typ.layout, b.count, element)
	if b.addr == bottom && len(list) > 0 && list[0].at >= 0 && list[0].at < math.MaxUint16 {
		return nil, errorf(errBuffer, "the buffer is NULL and has %d elements", b.count)
	}
	return list, nil
}

// pack copies the spans of a buffer to memory of their own. An accumulate from many short pieces
// to a contiguous target is then one message.
func (b *winBuffer) pack(list []span) (packed []byte) {
	n := int64(0)
	for _, s := range list {
		n += s.n
	}
	packed = make([]byte, 0, n)
	for _, s := range list {
		packed = append(packed, memory[byte](b.addr+uintptr(s.at), int(s.n))...)
	}
	return packed
}

// cursor is a position in a list of spans.
type cursor struct {
	list []span
	used int64 // of the first span
}

// rest returns how much of the current span is left, 0 at the end.
func (c *cursor) rest() int64 {
	if len(c.list) == 0 {
		return 0
	}
	return c.list[0].n - c.used
}

// take moves n bytes on, at most rest, and returns the offset of the first.
func (c *cursor) take(n int64) int64 {
	at := c.list[0].at + c.used
	if c.used += n; c.used == c.list[0].n {
		c.list, c.used = c.list[1:], 0
	}
	return at
}
