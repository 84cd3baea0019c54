package mpi

// Reduction operations (MPI-4.1 section 6.9).

import "github.com/muster-mpi/muster/internal/dtype"

// Op combines the contributions of ranks. Combine sets inout[i] to
// in[i] ∘ inout[i] for all i, as MPI's user functions do: in comes from the lower
// ranks, which matters only if NonCommutative is set. It must be associative.
type Op[T any] struct {
	Name           string
	Combine        func(inout, in []T)
	NonCommutative bool
}

// The types that the predefined operations work on.
type (
	Number  = dtype.Number
	Real    = dtype.Real
	Integer = dtype.Integer
)

// Sum adds.
func Sum[T Number]() Op[T] { return Op[T]{Name: "Sum", Combine: dtype.Sum[T]} }

// Prod multiplies.
func Prod[T Number]() Op[T] { return Op[T]{Name: "Prod", Combine: dtype.Prod[T]} }

// Min takes the smaller.
func Min[T Real]() Op[T] { return Op[T]{Name: "Min", Combine: dtype.Min[T]} }

// Max takes the larger.
func Max[T Real]() Op[T] { return Op[T]{Name: "Max", Combine: dtype.Max[T]} }

// LogicalAnd is 1 where all are other than 0, else 0.
func LogicalAnd[T Integer]() Op[T] { return Op[T]{Name: "LogicalAnd", Combine: dtype.LogicalAnd[T]} }

// LogicalOr is 1 where one is other than 0, else 0.
func LogicalOr[T Integer]() Op[T] { return Op[T]{Name: "LogicalOr", Combine: dtype.LogicalOr[T]} }

// LogicalXor is 1 where an odd number are other than 0, else 0.
func LogicalXor[T Integer]() Op[T] { return Op[T]{Name: "LogicalXor", Combine: dtype.LogicalXor[T]} }

// BitAnd combines bits.
func BitAnd[T Integer]() Op[T] { return Op[T]{Name: "BitAnd", Combine: dtype.BitAnd[T]} }

// BitOr combines bits.
func BitOr[T Integer]() Op[T] { return Op[T]{Name: "BitOr", Combine: dtype.BitOr[T]} }

// BitXor combines bits.
func BitXor[T Integer]() Op[T] { return Op[T]{Name: "BitXor", Combine: dtype.BitXor[T]} }

// Loc is a value and where it was found, for MinLoc and MaxLoc.
type Loc[V Real] = dtype.Pair[V, int64]

// MinLoc takes the smaller value with its place; of equal values the lower place.
func MinLoc[V Real]() Op[Loc[V]] { return Op[Loc[V]]{Name: "MinLoc", Combine: dtype.MinLoc[V, int64]} }

// MaxLoc takes the larger value with its place; of equal values the lower place.
func MaxLoc[V Real]() Op[Loc[V]] { return Op[Loc[V]]{Name: "MaxLoc", Combine: dtype.MaxLoc[V, int64]} }
