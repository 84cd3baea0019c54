package mpi

// Windows of bytes for the C interface, which describes them (package cbinding).

import (
	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/internal/rma"
)

// byteWin is a window of bytes whose accumulates say what their elements are.
type byteWin struct {
	Win[byte]
	codes [256]*rma.Elements
}

func newByteWin(c *Comm, cfg cbinding.WinConfig) (cbinding.Win, error) {
	how, n := allocated, cfg.Bytes
	switch {
	case cfg.Existing:
		how, n = overMemory, len(cfg.Memory)
	case cfg.Shared:
		how = shared
	case cfg.Dynamic:
		how, n = dynamic, 0
	}
	w := &byteWin{}
	for _, e := range cfg.Elements {
		w.codes[e.Code] = &e
	}
	w.byAddress, w.contiguous = cfg.Dynamic, cfg.Contiguous
	w.others = func(code uint8) *rma.Elements { return w.codes[code] }
	if err := w.open(c, how, cfg.Memory, n); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *byteWin) Window() any { return &w.Win }

func (w *byteWin) Open(rank int) bool {
	return uint(rank) < uint(w.c.size) && w.epochs.Open(rank)
}

func (w *byteWin) AttachAt(address uintptr, mem []byte) error {
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

func (w *byteWin) DetachAt(address uintptr) error {
	const op = "Detach"
	if err := w.check(op, w.c.rank); err != nil {
		return err
	}
	if w.flavor != dynamic || !w.far.DetachAt(uint64(address)) {
		return w.refuse(ErrRMAAttach, op, "no memory is attached at %#x", address)
	}
	return nil
}

func (w *byteWin) BeginRequest(name string, target int) (cbinding.Access, error) {
	if err := w.check(name, target); err != nil {
		return cbinding.Access{}, err
	}
	if !w.epochs.Passive(target) {
		return cbinding.Access{}, w.refuse(ErrRMASync, name, "rank %d is not locked: requests are for Lock and LockAll", target)
	}
	a := cbinding.Access{Name: name}
	if w.far != nil {
		a.Batch = w.c.e.NewBatch()
	}
	return a, nil
}

func (w *byteWin) Request(a cbinding.Access) any {
	h := w.c.beginStart(a.Name, CallAccess, ProcNull, AnyTag, 0)
	if a.Batch == nil {
		return h.finishStart(w.c.refusedRequest(nil))
	}
	return h.finishStart(Request{c: w.c, op: w.c.e.Seal(a.Batch)})
}

func (w *byteWin) PutBytes(a cbinding.Access, buf []byte, target, disp int) error {
	if a.Batch == nil {
		return w.Put(buf, target, disp)
	}
	return w.putSlow(a.Name, buf, target, disp, a.Batch)
}

func (w *byteWin) GetBytes(a cbinding.Access, buf []byte, target, disp int) error {
	if a.Batch == nil {
		return w.Get(buf, target, disp)
	}
	return w.getSlow(a.Name, buf, target, disp, a.Batch)
}

func (w *byteWin) Combine(a cbinding.Access, code uint8, op rma.Op, buf, result []byte, target, disp int) error {
	h := w.report(a, target, max(len(buf), len(result)))
	return h.finish(w.combine(a, code, op, buf, result, target, disp))
}

// report reports to hooks an access of a call without a request.
func (w *byteWin) report(a cbinding.Access, target, n int) *hookedCall {
	if a.Batch != nil {
		return nil
	}
	return w.access(a.Name, target, n)
}

func (w *byteWin) combine(a cbinding.Access, code uint8, op rma.Op, buf, result []byte, target, disp int) error {
	e := w.codes[code]
	if e == nil {
		return w.refuse(ErrType, a.Name, "accumulates are not defined for elements with code %d", code)
	}
	n := max(len(buf), len(result))
	if op < rma.Replace && !e.Custom(op, nil, nil) {
		return w.refuse(ErrOp, a.Name, "the operation is not defined for the elements")
	}
	region, offset, err := w.locate(a.Name, n, target, disp)
	if err != nil || n == 0 {
		return err
	}
	if w.far != nil {
		w.far.Accumulate(target, region, offset, op, buf, result, e, a.Batch)
		return nil
	}
	to := w.part(target)[disp : disp+n]
	if combineBytes(e, to, buf, result, op) {
		return nil
	}
	return w.runAlone(a.Name, target, func() {
		copy(result, to)
		if buf != nil {
			e.Combine(op, to, buf)
		}
	})
}

func (w *byteWin) CompareSwap(a cbinding.Access, code uint8, expected, value, result []byte, target, disp int) error {
	h := w.report(a, target, len(value))
	return h.finish(w.compareSwap(a, code, expected, value, result, target, disp))
}

func (w *byteWin) compareSwap(a cbinding.Access, code uint8, expected, value, result []byte, target, disp int) error {
	e := w.codes[code]
	if e == nil {
		return w.refuse(ErrType, a.Name, "accumulates are not defined for elements with code %d", code)
	}
	region, offset, err := w.locate(a.Name, len(value), target, disp)
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
	return w.runAlone(a.Name, target, func() {
		copy(result, mem)
		if string(mem) == string(expected) {
			copy(mem, value)
		}
	})
}
