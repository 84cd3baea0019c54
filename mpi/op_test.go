package mpi_test

import (
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/mpi"
)

// The predefined operations use the reductions with vector instructions. The
// implementation of a sum can be detected if the destination is the source shifted by one,
// an overlap that only this test uses: element by element every sum is added to the next.
func TestPredefinedOpsReachTheFastReductions(t *testing.T) {
	reachesFast[float64](t, "float64")
	reachesFast[float32](t, "float32")
	reachesFast[int64](t, "int64")
	reachesFast[int32](t, "int32")
	reachesFast[uint16](t, "uint16")
	reachesFast[celsius](t, "a type with a name")
}

func reachesFast[T mpi.Real](t *testing.T, name string) {
	got, want := slices.Repeat([]T{2}, 1000), slices.Repeat([]T{2}, 1000)
	mpi.Sum[T]().Apply(got[1:], got)
	dtype.Sum(want[1:], want)
	if !slices.Equal(got, want) {
		t.Errorf("Sum of %s goes another way than package dtype's: the last element is %v, there %v", name, got[999], want[999])
	}
	for _, op := range []func() mpi.Op[T]{mpi.Sum[T], mpi.Prod[T], mpi.Min[T], mpi.Max[T]} {
		if n := testing.AllocsPerRun(10, func() { op().Apply(got, want) }); n != 0 {
			t.Errorf("%s of %s made %v allocations, want none", op().Name(), name, n)
		}
	}
}
