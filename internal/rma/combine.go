package rma

// What accumulates do to elements (MPI-4.1 section 12.3.4): the predefined reductions, and
// two operations that only accumulates have.

import "github.com/muster-mpi/muster/internal/dtype"

// Op is the operation of an accumulate: one of package dtype, or Replace or NoOp.
type Op uint8

const (
	Replace Op = 64 + iota // MPI_REPLACE
	NoOp                   // MPI_NO_OP
)

// Elements describes the elements of a window's memory.
type Elements struct {
	Size int
	// Kind is valid if Known: only then the predefined reductions are defined.
	Kind  dtype.Kind
	Known bool
	// Code is the number of the elements in requests: 0 for those of the window, otherwise
	// Target.Others knows them.
	Code uint8
	// Custom, if not nil, is the reductions of elements that package dtype does not know. It
	// returns false if the operation is not defined for them.
	Custom func(op Op, inout, in []byte) bool

	kernels [Replace]dtype.Kernel // looked up once
}

// Combine sets inout = in ∘ inout. It returns false if the operation is not defined for the
// elements.
func (e *Elements) Combine(op Op, inout, in []byte) bool {
	switch {
	case op == NoOp:
	case op == Replace:
		copy(inout, in)
	case op < Replace && e.Custom != nil:
		return e.Custom(op, inout, in)
	case op < Replace:
		k := e.Kernel(op)
		if k == nil {
			return false
		}
		k(inout, in)
	default:
		return false
	}
	return true
}

// Kernel returns the function of a predefined reduction, nil if it is not defined.
func (e *Elements) Kernel(op Op) dtype.Kernel {
	if !e.Known || op >= Replace {
		return nil
	}
	if e.kernels[op] == nil {
		k, err := dtype.PredefinedKernel(dtype.Op(op), e.Kind)
		if err != nil {
			return nil
		}
		e.kernels[op] = k
	}
	return e.kernels[op]
}
