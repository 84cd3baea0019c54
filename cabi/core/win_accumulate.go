package core

// Accumulates (MPI-4.1 section 12.3.4): calls that read, change and write memory of a target
// atomically, element by element.

import (
	"slices"

	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/internal/rma"
)

func accumulates() map[string]handler {
	return map[string]handler{
		"Accumulate":       accumulate(false),
		"Raccumulate":      accumulate(true),
		"Get_accumulate":   getAccumulate(false),
		"Rget_accumulate":  getAccumulate(true),
		"Fetch_and_op":     (*Process).fetchAndOp,
		"Compare_and_swap": (*Process).compareAndSwap,
	}
}

// atomOp returns the operation of an accumulate, which is a predefined one.
func (a *args) atomOp(i int) rma.Op {
	code := predefinedOp(a.handle(i))
	switch code {
	case 0:
		a.fail(errorf(errOp, "%#x is not a predefined operation", uint32(a.handle(i))))
		return rma.NoOp
	case opReplace:
		return rma.Replace
	case opNoOp:
		return rma.NoOp
	}
	return rma.Op(slices.Index(opCodeOf[:], code))
}

// atomCode returns the code of a predefined datatype. The pairs have handles like those of
// datatypes that a program has made.
func atomCode(t *datatype) uint8 {
	if t.handle&datatypeMask == predefined|kindDatatype {
		return uint8(t.handle)
	}
	return 0x80 | uint8(t.handle)
}

// elements returns what accumulates do to the predefined datatypes.
func (p *Process) elements() []rma.Elements {
	var list []rma.Elements
	for _, t := range p.base.types {
		if t != nil && t.layout.Size() > 0 {
			list = append(list, p.elementsOf(t))
		}
	}
	for i := range pairTypes {
		if t := p.types.get(made | kindDatatype | handle(i)); t != nil {
			list = append(list, p.elementsOf(t))
		}
	}
	return list
}

func (p *Process) elementsOf(t *datatype) rma.Elements {
	by := p.kinds.arithmeticOf(t)
	e := rma.Elements{Code: atomCode(t), Size: int(t.layout.Extent()), Custom: func(op rma.Op, inout, in []byte) bool {
		if by == nil || int(op) >= len(opCodeOf) || !by.has(opCodeOf[op]) {
			return false
		}
		if len(inout) > 0 {
			by.local(opCodeOf[op], inout, in)
		}
		return true
	}}
	if t.reduce && slices.Contains(atomicKinds, t.kind) {
		e.Kind, e.Known = t.kind, true
	}
	return e
}

// atomicKinds are the kinds that the processor updates atomically.
var atomicKinds = []dtype.Kind{dtype.Int32, dtype.Int64, dtype.Uint32, dtype.Uint64, dtype.Float32, dtype.Float64}

// opCodeOf are the operations of atoms, but for those that only accumulates have.
var opCodeOf = [...]opCode{
	dtype.OpMax: opMax, dtype.OpMin: opMin, dtype.OpSum: opSum, dtype.OpProd: opProd,
	dtype.OpLogicalAnd: opLand, dtype.OpBitAnd: opBand, dtype.OpLogicalOr: opLor, dtype.OpBitOr: opBor,
	dtype.OpLogicalXor: opLxor, dtype.OpBitXor: opBxor, dtype.OpMinLoc: opMinloc, dtype.OpMaxLoc: opMaxloc,
}

// atomOf returns the predefined datatype that a datatype consists of.
func atomOf(t *datatype) (*datatype, error) {
	if e := t.element(); e != nil {
		return e, nil
	}
	return nil, errorf(errType, "the datatype of an accumulate must consist of one predefined datatype")
}

// accumulate returns the handler of MPI_Accumulate or MPI_Raccumulate.
func accumulate(requested bool) handler {
	return func(p *Process, a *args) error {
		origin, to, op := a.winBuffer(0), a.target(3, 8), a.atomOp(7)
		if a.err != nil {
			return a.err
		}
		return p.access(a, &to, requested, 9, func(t cbinding.Access) error { return to.combine(t, op, &origin, nil) })
	}
}

// getAccumulate returns the handler of MPI_Get_accumulate or MPI_Rget_accumulate. With
// MPI_NO_OP the origin is not used and may be anything.
func getAccumulate(requested bool) handler {
	return func(p *Process, a *args) error {
		op := a.atomOp(10)
		var origin *winBuffer
		if op != rma.NoOp {
			b := a.winBuffer(0)
			origin = &b
		}
		result, to := a.winBuffer(3), a.target(6, 11)
		if a.err != nil {
			return a.err
		}
		return p.access(a, &to, requested, 12, func(t cbinding.Access) error { return to.combine(t, op, origin, &result) })
	}
}

// fetchAndOp is MPI_Fetch_and_op: one element of a predefined datatype.
func (p *Process) fetchAndOp(a *args) error {
	op, typ := a.atomOp(5), a.datatype(2)
	to := targetMemory{w: a.win(6), count: 1, typ: typ}
	a.locate(&to, 3)
	if a.err == nil && !typ.basic {
		return errorf(errType, "the datatype is not a predefined one")
	}
	if a.err != nil {
		return a.err
	}
	result := winBuffer{a.addr(1), 1, typ}
	var origin *winBuffer
	if op != rma.NoOp {
		origin = &winBuffer{a.addr(0), 1, typ}
	}
	return p.access(a, &to, false, 0, func(t cbinding.Access) error { return to.combine(t, op, origin, &result) })
}

// combine makes an accumulate. origin or result may be nil.
func (to *targetMemory) combine(t cbinding.Access, op rma.Op, origin, result *winBuffer) error {
	if to.count == 0 || to.typ.layout.Size() == 0 {
		return nil
	}
	element, err := atomOf(to.typ)
	if err != nil {
		return err
	}
	code := atomCode(element)
	var rooms [3][1]span
	at := cursor{list: spans(rooms[0][:0], to.typ.layout, to.count, element.layout)}
	var in, out cursor
	if origin != nil {
		if in.list, err = origin.spans(rooms[1][:0], element.layout); err != nil {
			return err
		}
	}
	if result != nil {
		if out.list, err = result.spans(rooms[2][:0], element.layout); err != nil {
			return err
		}
	}
	var packed []byte
	if origin != nil && result == nil && len(in.list) > len(at.list) {
		packed = origin.pack(in.list)
		in.list = append(rooms[1][:0], span{0, int64(len(packed))})
	}
	for {
		n := at.rest()
		if origin != nil {
			n = min(n, in.rest())
		}
		if result != nil {
			n = min(n, out.rest())
		}
		if n == 0 {
			return nil
		}
		var from, was []byte
		switch {
		case packed != nil:
			from = packed[in.take(n):][:n]
		case origin != nil:
			from = memory[byte](origin.addr+uintptr(in.take(n)), int(n))
		}
		if result != nil {
			was = memory[byte](result.addr+uintptr(out.take(n)), int(n))
		}
		if err := to.w.bytes.Combine(t, code, op, from, was, to.rank, to.disp+int(at.take(n))); err != nil {
			return err
		}
	}
}

// compareAndSwap is MPI_Compare_and_swap, for integers, logicals and bytes.
func (p *Process) compareAndSwap(a *args) error {
	typ := a.datatype(3)
	to := targetMemory{w: a.win(6), count: 1, typ: typ}
	a.locate(&to, 4)
	if a.err != nil {
		return a.err
	}
	if !typ.basic || !typ.reduce || typ.kind > dtype.Uint64 {
		return errorf(errType, "MPI_Compare_and_swap is defined for integers, logicals and bytes")
	}
	if a.addr(0) == 0 || a.addr(1) == 0 || a.addr(2) == 0 {
		return errorf(errBuffer, "a buffer is NULL")
	}
	size := int(typ.layout.Size())
	value, expected, result := memory[byte](a.addr(0), size), memory[byte](a.addr(1), size), memory[byte](a.addr(2), size)
	return p.access(a, &to, false, 0, func(t cbinding.Access) error {
		return to.w.bytes.CompareSwap(t, atomCode(typ), expected, value, result, to.rank, to.disp)
	})
}
