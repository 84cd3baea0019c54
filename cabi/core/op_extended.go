package core

// Predefined operations on types that Go does not have: long double and those of the same
// size. A C function of the library computes them.

import (
	"slices"

	"github.com/muster-mpi/muster/mpi"
)

// wideFloats is arithmetic that a C function does.
type wideFloats struct {
	p     *Process
	fn    uintptr
	kind  uint64 // as the function numbers them
	unit  int
	codes []opCode
}

// addExtended adds the types to the known ones.
func (p *Process) addExtended(fn uintptr) {
	if fn == 0 {
		return
	}
	real, complex, pair := []opCode{opMax, opMin, opSum, opProd}, []opCode{opSum, opProd}, []opCode{opMinloc, opMaxloc}
	for _, k := range []struct {
		handle handle
		wideFloats
	}{
		{0x4c00100c, wideFloats{p, fn, 0, 16, real}},              // MPI_LONG_DOUBLE
		{0x4c002042, wideFloats{p, fn, 1, 32, complex}},           // MPI_C_LONG_DOUBLE_COMPLEX
		{0x4c002036, wideFloats{p, fn, 1, 32, complex}},           // MPI_CXX_LONG_DOUBLE_COMPLEX
		{made | kindDatatype | 4, wideFloats{p, fn, 2, 32, pair}}, // MPI_LONG_DOUBLE_INT
		{0x4c00102b, wideFloats{p, fn, 3, 16, real}},              // MPI_REAL16
		{0x4c00202c, wideFloats{p, fn, 4, 32, complex}},           // MPI_COMPLEX32
	} {
		p.kinds.byHandle[k.handle] = &k.wideFloats
	}
}

func (k *wideFloats) has(code opCode) bool { return slices.Contains(k.codes, code) }

func (k *wideFloats) local(code opCode, inout, in []byte) {
	if len(inout) > 0 {
		k.p.callback(k.fn, uint64(addressOf(in)), uint64(addressOf(inout)), uint64(len(inout)/k.unit), uint64(code), k.kind)
	}
}

func (k *wideFloats) reduce(r *reduction, code opCode) error {
	return perform(r, (&mpi.UserOp[byte]{Name: "extended", Unit: k.unit, Combine: func(inout, in []byte) { k.local(code, inout, in) }}).Op)
}
