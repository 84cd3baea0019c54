package mpi

// Windows of bytes, for bindings of languages where each call says what its elements are, as
// the C interface of MPI does. Displacements count bytes; in dynamic windows they are
// addresses of the target.

import (
	"reflect"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/rma"
)

// ByteWin is a window of bytes whose accumulates say what their elements are.
type ByteWin struct {
	Win[byte]
	atoms [256]*rma.Elements
}

// Atom is a type of elements of the accumulates on a [ByteWin].
type Atom struct {
	// Code is the number of the type, not 0. It is the same on all ranks.
	Code uint8
	// Size is the size of an element in bytes.
	Size int
	// Number is the type of a number of 4 or 8 bytes that the processor updates atomically:
	// Int32, Int64, Uint32, Uint64, Float32 or Float64. It is Invalid for all others.
	Number reflect.Kind
	// Combine sets inout = in ∘ inout for whole elements. It returns false if the operation is
	// not defined for the type.
	Combine func(op AtomOp, inout, in []byte) bool
}

// AtomOp is an operation on the elements of a [ByteWin].
type AtomOp uint8

// The operations of accumulates, in the order of the predefined reductions.
const (
	AtomSum AtomOp = iota
	AtomProd
	AtomMin
	AtomMax
	AtomLogicalAnd
	AtomLogicalOr
	AtomLogicalXor
	AtomBitAnd
	AtomBitOr
	AtomBitXor
	AtomMinLoc
	AtomMaxLoc
	AtomReplace AtomOp = 64 // the number in package rma, as are the others
	AtomNoOp    AtomOp = 65
)

// ByteWinConfig says how [NewByteWin] makes a window.
type ByteWinConfig struct {
	// Memory is the memory of the calling rank. If it is nil, the window allocates Bytes.
	Memory []byte
	Bytes  int
	// Existing, Shared and Dynamic select what [CreateWin], [AllocateSharedWin] and
	// [CreateDynamicWin] make; without them, the window is one of [AllocateWin].
	Existing, Shared, Dynamic bool
	// Contiguous places the memory of each rank of a shared window directly behind that of
	// the rank before, if the ranks are processes.
	Contiguous bool
	// Atoms are the types of elements of accumulates, the same on all ranks.
	Atoms []Atom
}

// NewByteWin creates a window of bytes. All ranks of c call it.
func NewByteWin(c *Comm, cfg ByteWinConfig) (*ByteWin, error) {
	how, n := allocated, cfg.Bytes
	switch {
	case cfg.Existing:
		how, n = overMemory, len(cfg.Memory)
	case cfg.Shared:
		how = shared
	case cfg.Dynamic:
		how, n = dynamic, 0
	}
	w := &ByteWin{}
	for _, a := range cfg.Atoms {
		e := numberOf(a.Number)
		e.Size, e.Code = a.Size, a.Code
		e.Custom = func(op rma.Op, inout, in []byte) bool { return a.Combine(AtomOp(op), inout, in) }
		w.atoms[a.Code] = &e
	}
	w.byAddress, w.contiguous = cfg.Dynamic, cfg.Contiguous
	w.others = func(code uint8) *rma.Elements { return w.atoms[code] }
	if err := w.open(c, how, cfg.Memory, n); err != nil {
		return nil, err
	}
	return w, nil
}

// numberOf returns the elements of a kind of numbers.
func numberOf(k reflect.Kind) rma.Elements {
	switch k {
	case reflect.Int32:
		return elementsOf[int32]()
	case reflect.Int64:
		return elementsOf[int64]()
	case reflect.Uint32:
		return elementsOf[uint32]()
	case reflect.Uint64:
		return elementsOf[uint64]()
	case reflect.Float32:
		return elementsOf[float32]()
	case reflect.Float64:
		return elementsOf[float64]()
	}
	return rma.Elements{}
}

// Open reports whether the memory of a rank may be accessed now.
func (w *ByteWin) Open(rank int) bool {
	return uint(rank) < uint(w.c.size) && w.epochs.Open(rank)
}

// Locked reports whether this rank has locked the memory of a rank.
func (w *ByteWin) Locked(rank int) bool {
	return uint(rank) < uint(w.c.size) && w.epochs.Passive(rank)
}

// AttachAt adds memory to a dynamic window. Its address is the displacement for other ranks.
func (w *ByteWin) AttachAt(address uintptr, mem []byte) error {
	const op = "Attach"
	if err := w.check(op, w.c.rank); err != nil {
		return err
	}
	if w.flavor != dynamic {
		return w.refuse(ErrRMAFlavor, op, "the window was made by %v; use CreateDynamicWin", w.flavor)
	}
	if !w.far.AttachAt(uint64(address), mem) {
		return w.refuse(ErrRMAAttach, op, "memory is attached at %#x already", address)
	}
	return nil
}

// DetachAt removes memory from a dynamic window.
func (w *ByteWin) DetachAt(address uintptr) error {
	const op = "Detach"
	if err := w.check(op, w.c.rank); err != nil {
		return err
	}
	if w.flavor != dynamic || !w.far.DetachAt(uint64(address)) {
		return w.refuse(ErrRMAAttach, op, "no memory is attached at %#x", address)
	}
	return nil
}

// Transfer is the accesses of one call, which may be to several places. Its request is
// complete when all of them are.
type Transfer struct {
	w     *ByteWin
	name  string
	batch *engine.Batch // nil for calls without a request
}

// Begin begins the accesses of a call without a request.
func (w *ByteWin) Begin(name string) Transfer { return Transfer{w: w, name: name} }

// BeginRequest begins the accesses of a call with a request. The target must be locked.
func (w *ByteWin) BeginRequest(name string, target int) (Transfer, error) {
	if err := w.check(name, target); err != nil {
		return Transfer{}, err
	}
	if !w.epochs.Passive(target) {
		return Transfer{}, w.refuse(ErrRMASync, name, "rank %d is not locked: requests are for Lock and LockAll", target)
	}
	t := Transfer{w: w, name: name}
	if w.far != nil {
		t.batch = w.c.e.NewBatch()
	}
	return t, nil
}

// Request returns the request for the accesses since BeginRequest.
func (t Transfer) Request() Request {
	h := t.w.c.beginStart(t.name, CallAccess, ProcNull, AnyTag, 0)
	if t.batch == nil {
		return h.started(t.w.c.refused(nil))
	}
	return h.started(Request{c: t.w.c, op: t.w.c.e.Seal(t.batch)})
}

// Put writes buf into the memory of target.
func (t Transfer) Put(buf []byte, target, disp int) error {
	if t.batch == nil {
		return t.w.Put(buf, target, disp)
	}
	return t.w.putSlow(t.name, buf, target, disp, t.batch)
}

// Get reads the memory of target into buf.
func (t Transfer) Get(buf []byte, target, disp int) error {
	if t.batch == nil {
		return t.w.Get(buf, target, disp)
	}
	return t.w.getSlow(t.name, buf, target, disp, t.batch)
}

// Accumulate combines elements of the type with a code with those of target. If result is
// not nil, it gets the previous ones; buf is nil with AtomNoOp.
func (t Transfer) Accumulate(code uint8, op AtomOp, buf, result []byte, target, disp int) error {
	h := t.access(target, max(len(buf), len(result)))
	return h.done(t.accumulate(code, op, buf, result, target, disp))
}

// access reports to hooks an access of a call without a request.
func (t Transfer) access(target, n int) *hookedCall {
	if t.batch != nil {
		return nil
	}
	return t.w.access(t.name, target, n)
}

func (t Transfer) accumulate(code uint8, op AtomOp, buf, result []byte, target, disp int) error {
	w, e := t.w, t.w.atoms[code]
	if e == nil {
		return w.refuse(ErrType, t.name, "accumulates are not defined for elements with code %d", code)
	}
	n := max(len(buf), len(result))
	if op < AtomReplace && !e.Custom(rma.Op(op), nil, nil) {
		return w.refuse(ErrOp, t.name, "the operation is not defined for the elements")
	}
	region, offset, err := w.locate(t.name, n, target, disp)
	if err != nil || n == 0 {
		return err
	}
	if w.far != nil {
		w.far.Accumulate(target, region, offset, rma.Op(op), buf, result, e, t.batch)
		return nil
	}
	to := w.part(target)[disp : disp+n]
	if combineBytes(e, to, buf, result, rma.Op(op)) {
		return nil
	}
	return w.alone(t.name, target, func() {
		copy(result, to)
		if buf != nil {
			e.Combine(rma.Op(op), to, buf)
		}
	})
}

// CompareSwap stores value at disp of target if expected is there. result gets what was
// there before.
func (t Transfer) CompareSwap(code uint8, expected, value, result []byte, target, disp int) error {
	h := t.access(target, len(value))
	return h.done(t.compareSwap(code, expected, value, result, target, disp))
}

func (t Transfer) compareSwap(code uint8, expected, value, result []byte, target, disp int) error {
	w, e := t.w, t.w.atoms[code]
	if e == nil {
		return w.refuse(ErrType, t.name, "accumulates are not defined for elements with code %d", code)
	}
	region, offset, err := w.locate(t.name, len(value), target, disp)
	if err != nil {
		return err
	}
	if w.far != nil {
		w.far.CompareSwap(target, region, offset, expected, value, result)
		return nil
	}
	mem := w.part(target)[disp : disp+len(value)]
	if swapBytes(e, mem, expected, value, result) {
		return nil
	}
	return w.alone(t.name, target, func() {
		copy(result, mem)
		if string(mem) == string(expected) {
			copy(mem, value)
		}
	})
}
