package mpi

// Accumulates on memory that all ranks of a window have mapped: atomic instructions, for
// numbers of 4 and 8 bytes. All updates of such elements use them, so that none is lost.
// Other elements are updated under a lock beside the memory (window.runAlone).

import (
	"sync/atomic"
	"unsafe"

	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/internal/rma"
)

const lineBytes = 64

// control is the control words of a rank, each on its own cache line. The zero value is
// ready for use.
type control struct {
	next    atomic.Uint32 // the next ticket
	_       [lineBytes - 4]byte
	readers atomic.Uint32 // the ticket that may enter as a reader
	_       [lineBytes - 4]byte
	writers atomic.Uint32 // the ticket that may enter as a writer
	_       [lineBytes - 4]byte
	busy    atomic.Uint32 // 1 while an element is updated that has no atomic instruction
	_       [lineBytes - 4]byte
}

const controlBytes = int(unsafe.Sizeof(control{}))

// controls returns memory, which is aligned to 4 bytes, as the control words of n ranks.
func controls(b []byte, n int) []*control {
	all := make([]*control, n)
	for i := range all {
		all[i] = (*control)(unsafe.Pointer(&b[i*controlBytes]))
	}
	return all
}

// sliceOf returns a slice of the one element at p.
func sliceOf[T any](p *T) []T { return unsafe.Slice(p, 1) }

// fetchNative updates one element. It returns false if there is no atomic instruction for
// it.
func fetchNative[T any](e *rma.Elements, to, value, was *T, op rma.Op) bool {
	if !e.Known {
		return false
	}
	p, v, r := unsafe.Pointer(to), unsafe.Pointer(value), unsafe.Pointer(was)
	switch e.Kind {
	case dtype.Int64:
		*(*int64)(r) = fetch64(p, *(*int64)(v), op)
	case dtype.Uint64:
		*(*uint64)(r) = fetch64(p, *(*uint64)(v), op)
	case dtype.Int32:
		*(*int32)(r) = fetch32(p, *(*int32)(v), op)
	case dtype.Uint32:
		*(*uint32)(r) = fetch32(p, *(*uint32)(v), op)
	case dtype.Float64:
		*(*float64)(r) = fetchFloat64(p, *(*float64)(v), op)
	case dtype.Float32:
		*(*float32)(r) = fetchFloat32(p, *(*float32)(v), op)
	default:
		return false
	}
	return true
}

// combineNative updates elements one after the other. in is nil with NoOp; was is nil if
// the old values are not needed.
func combineNative[T any](e *rma.Elements, to, in, was []T, op rma.Op) bool {
	var none, old T
	if len(to) == 0 {
		return true
	}
	for i := range to {
		value := &none
		if in != nil {
			value = &in[i]
		}
		if !fetchNative(e, &to[i], value, &old, op) {
			return false // at the first element: it depends on the type alone
		}
		if was != nil {
			was[i] = old
		}
	}
	return true
}

// combineBytes is combineNative for elements of a type that only e knows. Elements that are
// not aligned have no atomic instructions on all processors.
func combineBytes(e *rma.Elements, to, in, was []byte, op rma.Op) bool {
	if !e.Known || len(to) == 0 || uintptr(unsafe.Pointer(&to[0]))%uintptr(e.Size) != 0 {
		return len(to) == 0
	}
	switch e.Size {
	case 4:
		return combineNative(e, elements[uint32](to), elements[uint32](in), elements[uint32](was), op)
	case 8:
		return combineNative(e, elements[uint64](to), elements[uint64](in), elements[uint64](was), op)
	}
	return false
}

// swapBytes is swapNative for an element of a type that only e knows.
func swapBytes(e *rma.Elements, to, expected, value, was []byte) bool {
	if !e.Known || len(to) < e.Size || uintptr(unsafe.Pointer(&to[0]))%uintptr(e.Size) != 0 {
		return false
	}
	switch e.Size {
	case 4:
		return swapNative(e, &elements[uint32](to)[0], &elements[uint32](expected)[0], &elements[uint32](value)[0], &elements[uint32](was)[0])
	case 8:
		return swapNative(e, &elements[uint64](to)[0], &elements[uint64](expected)[0], &elements[uint64](value)[0], &elements[uint64](was)[0])
	}
	return false
}

// swapNative compares and swaps one element.
func swapNative[T any](e *rma.Elements, to, expected, value, was *T) bool {
	if !e.Known {
		return false
	}
	p, a, b, r := unsafe.Pointer(to), unsafe.Pointer(expected), unsafe.Pointer(value), unsafe.Pointer(was)
	switch e.Kind {
	case dtype.Int64, dtype.Uint64, dtype.Float64:
		old := *(*uint64)(a)
		for !atomic.CompareAndSwapUint64((*uint64)(p), old, *(*uint64)(b)) {
			if old = atomic.LoadUint64((*uint64)(p)); old != *(*uint64)(a) {
				break
			}
		}
		*(*uint64)(r) = old
	case dtype.Int32, dtype.Uint32, dtype.Float32:
		old := *(*uint32)(a)
		for !atomic.CompareAndSwapUint32((*uint32)(p), old, *(*uint32)(b)) {
			if old = atomic.LoadUint32((*uint32)(p)); old != *(*uint32)(a) {
				break
			}
		}
		*(*uint32)(r) = old
	default:
		return false
	}
	return true
}

func fetch64[N int64 | uint64](p unsafe.Pointer, v N, op rma.Op) N {
	word := (*uint64)(p)
	switch op {
	case rma.Op(dtype.OpSum):
		return N(atomic.AddUint64(word, uint64(v))) - v
	case rma.Replace:
		return N(atomic.SwapUint64(word, uint64(v)))
	case rma.NoOp:
		return N(atomic.LoadUint64(word))
	}
	for {
		old := atomic.LoadUint64(word)
		if atomic.CompareAndSwapUint64(word, old, uint64(integer(op, N(old), v))) {
			return N(old)
		}
	}
}

func fetch32[N int32 | uint32](p unsafe.Pointer, v N, op rma.Op) N {
	word := (*uint32)(p)
	switch op {
	case rma.Op(dtype.OpSum):
		return N(atomic.AddUint32(word, uint32(v))) - v
	case rma.Replace:
		return N(atomic.SwapUint32(word, uint32(v)))
	case rma.NoOp:
		return N(atomic.LoadUint32(word))
	}
	for {
		old := atomic.LoadUint32(word)
		if atomic.CompareAndSwapUint32(word, old, uint32(integer(op, N(old), v))) {
			return N(old)
		}
	}
}

func fetchFloat64(p unsafe.Pointer, v float64, op rma.Op) float64 {
	word := (*uint64)(p)
	for {
		old := atomic.LoadUint64(word)
		was := *(*float64)(unsafe.Pointer(&old))
		is := real1(op, was, v)
		if op == rma.NoOp || atomic.CompareAndSwapUint64(word, old, *(*uint64)(unsafe.Pointer(&is))) {
			return was
		}
	}
}

func fetchFloat32(p unsafe.Pointer, v float32, op rma.Op) float32 {
	word := (*uint32)(p)
	for {
		old := atomic.LoadUint32(word)
		was := *(*float32)(unsafe.Pointer(&old))
		is := real1(op, was, v)
		if op == rma.NoOp || atomic.CompareAndSwapUint32(word, old, *(*uint32)(unsafe.Pointer(&is))) {
			return was
		}
	}
}

// real1 is the reductions of package dtype for one number.
func real1[N int32 | int64 | uint32 | uint64 | float32 | float64](op rma.Op, old, v N) N {
	switch op {
	case rma.Op(dtype.OpSum):
		return old + v
	case rma.Op(dtype.OpProd):
		return old * v
	case rma.Op(dtype.OpMin):
		return min(old, v)
	case rma.Op(dtype.OpMax):
		return max(old, v)
	case rma.Replace:
		return v
	}
	return old
}

// integer is real1 with the operations of integers.
func integer[N int32 | int64 | uint32 | uint64](op rma.Op, old, v N) N {
	truth := func(b bool) N {
		if b {
			return 1
		}
		return 0
	}
	switch op {
	case rma.Op(dtype.OpBitAnd):
		return old & v
	case rma.Op(dtype.OpBitOr):
		return old | v
	case rma.Op(dtype.OpBitXor):
		return old ^ v
	case rma.Op(dtype.OpLogicalAnd):
		return truth(old != 0 && v != 0)
	case rma.Op(dtype.OpLogicalOr):
		return truth(old != 0 || v != 0)
	case rma.Op(dtype.OpLogicalXor):
		return truth((old != 0) != (v != 0))
	}
	return real1(op, old, v)
}
