package mpi_test

// Element types of messages: any type without pointers. Others are rejected with an error
// that names the field.

import (
	"cmp"
	"math"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

type particle struct {
	ID       uint32
	Charge   int8
	Position [3]float64
	Spin     complex64
	Flags    [2]struct{ Alive, Fixed bool }
}

type celsius float64

// around sends a slice around the ring and expects that of the neighbor.
func around[T comparable](t *testing.T, c *mpi.Comm, name string, value func(rank int) T) {
	t.Helper()
	next, prev := neighbors(c)
	out, in := make([]T, 3), make([]T, 5)
	for i := range out {
		out[i] = value(c.Rank() + i)
	}
	st, err := mpi.Sendrecv(c, out, next, 1, in, prev, 1)
	noError(t, err, "Sendrecv of "+name)
	if n, whole := mpi.Count[T](st); n != 3 || !whole {
		t.Errorf("%s: Count gives %d, %v, want 3 whole ones", name, n, whole)
	}
	for i := range out {
		if in[i] != value(prev+i) {
			t.Errorf("%s: element %d is %v, want %v", name, i, in[i], value(prev+i))
		}
	}
	var zero T
	if in[3] != zero || in[4] != zero {
		t.Errorf("%s: elements beyond the message were written", name)
	}
}

func TestElementTypes(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3}, func(t *testing.T, c *mpi.Comm) {
		around(t, c, "bool", func(r int) bool { return r%2 == 0 })
		around(t, c, "int8", func(r int) int8 { return int8(-r) })
		around(t, c, "uint16", func(r int) uint16 { return uint16(60000 + r) })
		around(t, c, "int32", func(r int) int32 { return int32(-r) << 20 })
		around(t, c, "int", func(r int) int { return math.MinInt + r })
		around(t, c, "uintptr", func(r int) uintptr { return uintptr(r) })
		around(t, c, "float32", func(r int) float32 { return float32(r) / 3 })
		around(t, c, "complex128", func(r int) complex128 { return complex(float64(r), -1) })
		around(t, c, "a named number", func(r int) celsius { return celsius(r) + 0.5 })
		around(t, c, "an array", func(r int) [2][2]int16 { return [2][2]int16{{int16(r), 1}, {2, 3}} })
		around(t, c, "a struct", func(r int) particle {
			p := particle{ID: uint32(r), Charge: -1, Position: [3]float64{1, 2, float64(r)}, Spin: complex(1, float32(r))}
			p.Flags[1].Fixed = true
			return p
		})
		around(t, c, "a struct without a name", func(r int) struct{ A, B int } { return struct{ A, B int }{r, -r} })
	})
}

// Messages of a zero-size type are empty.
func TestElementOfNoSize(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		st, err := mpi.Sendrecv(c, make([]struct{}, 4), 0, 1, make([]struct{}, 4), 0, 1)
		noError(t, err, "Sendrecv of empty structs")
		if n, whole := mpi.Count[struct{}](st); st.Bytes != 0 || n != 0 || !whole {
			t.Errorf("status %+v, count %d, %v", st, n, whole)
		}
	})
}

// Count reports a message that is not a whole number of elements.
func TestCountPartialElement(t *testing.T) {
	for _, k := range []struct {
		bytes, n int
		whole    bool
	}{{0, 0, true}, {7, 0, false}, {8, 1, true}, {12, 1, false}, {80, 10, true}} {
		if n, whole := mpi.Count[float64](mpi.Status{Bytes: k.bytes}); n != k.n || whole != k.whole {
			t.Errorf("%d bytes are %d, %v float64; want %d, %v", k.bytes, n, whole, k.n, k.whole)
		}
	}
}

type secret struct {
	Year  int
	Names [2]struct{ First string }
}

func refuses[T any](t *testing.T, c *mpi.Comm, want ...string) {
	t.Helper()
	buf := make([]T, 1)
	for what, err := range map[string]error{
		"Send":      mpi.Send(c, buf, 0, 1),
		"Ssend":     mpi.Ssend(c, buf, 0, 1),
		"Bsend":     mpi.Bsend(c, buf, 0, 1),
		"Isend":     waitErr(mpi.Isend(c, buf, 0, 1)),
		"Ibsend":    waitErr(mpi.Ibsend(c, buf, 0, 1)),
		"Irecv":     waitErr(mpi.Irecv(c, buf, 0, 1)),
		"SendInit":  waitErr(mpi.SendInit(c, buf, 0, 1).Start()),
		"RecvInit":  waitErr(mpi.RecvInit(c, buf, 0, 1).Start()),
		"Bcast":     mpi.Bcast(c, buf, 0),
		"Gather":    mpi.Gather(c, buf, buf, 0),
		"Allgather": mpi.Allgather(c, buf, buf),
		"Scatter":   mpi.Scatter(c, buf, buf, 0),
		"Alltoall":  mpi.Alltoall(c, buf, buf),
		"Reduce":    mpi.Reduce(c, buf, buf, (&mpi.UserOp[T]{Combine: func(_, _ []T) {}}).Op, 0),
	} {
		wantClass(t, err, mpi.ErrType, what)
		remedy := map[string]string{"Bcast": "BcastValue", "Gather": "GatherValue", "Allgather": "AllgatherValue", "Scatter": "ScatterValue", "Reduce": "AllreduceValue"}
		for _, w := range append(want, cmp.Or(remedy[what], "SendValue and RecvValue")) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q does not say %q", what, err, w)
			}
		}
	}
	_, err := mpi.Recv(c, buf, 0, 1)
	wantClass(t, err, mpi.ErrType, "Recv")
	_, err = mpi.Sendrecv(c, []int{1}, 0, 1, buf, 0, 1)
	wantClass(t, err, mpi.ErrType, "Sendrecv into such a buffer")
	if _, ok, _ := c.Iprobe(0, 1); ok {
		t.Error("a call that was refused has sent its message")
	}
}

func TestTypesWithPointersAreRefused(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		refuses[string](t, c, "string")
		refuses[[]int](t, c, "slice")
		refuses[*int](t, c, "ptr")
		refuses[any](t, c, "interface")
		refuses[map[int]int](t, c, "map")
		refuses[chan int](t, c, "chan")
		refuses[func()](t, c, "func")
		refuses[[3]*int](t, c, "ptr")
		refuses[struct{ A, B error }](t, c, "interface", "field .A")
		refuses[secret](t, c, "mpi_test.secret", "string", "Names[].First")
	})
}
