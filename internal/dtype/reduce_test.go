package dtype

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/seeded"
)

// expect runs a reduction on random elements of every length up to 100, some longer ones
// and every alignment, and compares it with a loop over single elements. Memory around
// the destination must not change.
func expect[T comparable](t *testing.T, name string, reduce func(dst, src []T), one func(d, s T) T, random func() T) {
	t.Helper()
	lengths := []int{255, 256, 257, 1000}
	for n := range 101 {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		shift := n % 33
		around, src := make([]T, shift+n+3), make([]T, n+n%3)
		for i := range src {
			src[i] = random()
		}
		for i := range around {
			around[i] = random()
		}
		want := slices.Clone(around)
		for i := range n {
			want[shift+i] = one(want[shift+i], src[i])
		}
		reduce(around[shift:shift+n], src)
		for i := range around {
			if around[i] != want[i] {
				t.Errorf("%s of %T: element %d of %d is %v, want %v", name, src, i-shift, n, around[i], want[i])
				return
			}
		}
	}
}

func expectNumber[T Number](t *testing.T, random func() T) {
	expect(t, "sum", Sum[T], func(d, s T) T { return d + s }, random)
	expect(t, "prod", Prod[T], func(d, s T) T { return d * s }, random)
}

func expectReal[T Real](t *testing.T, random func() T) {
	expectNumber(t, random)
	expect(t, "min", Min[T], func(d, s T) T {
		if s < d {
			return s
		}
		return d
	}, random)
	expect(t, "max", Max[T], func(d, s T) T {
		if s > d {
			return s
		}
		return d
	}, random)
}

func expectInteger[T Integer](t *testing.T, numbers *rand.Rand) {
	random := func() T { return T(numbers.Uint64() >> (numbers.IntN(2) * 63)) } // half of them 0 or 1
	expectReal(t, random)
	is := func(x T) int { return map[bool]int{true: 1}[x != 0] }
	expect(t, "logical and", LogicalAnd[T], func(d, s T) T { return T(is(d) & is(s)) }, random)
	expect(t, "logical or", LogicalOr[T], func(d, s T) T { return T(is(d) | is(s)) }, random)
	expect(t, "logical xor", LogicalXor[T], func(d, s T) T { return T(is(d) ^ is(s)) }, random)
	expect(t, "bit and", BitAnd[T], func(d, s T) T { return d & s }, random)
	expect(t, "bit or", BitOr[T], func(d, s T) T { return d | s }, random)
	expect(t, "bit xor", BitXor[T], func(d, s T) T { return d ^ s }, random)
}

func TestReductions(t *testing.T) {
	numbers := seeded.Random(t)
	expectInteger[int](t, numbers)
	expectInteger[int8](t, numbers)
	expectInteger[int16](t, numbers)
	expectInteger[int32](t, numbers)
	expectInteger[int64](t, numbers)
	expectInteger[uint8](t, numbers)
	expectInteger[uint16](t, numbers)
	expectInteger[uint32](t, numbers)
	expectInteger[uint64](t, numbers)
	expectInteger[uint](t, numbers)
	expectInteger[uintptr](t, numbers)
	expectInteger[time.Duration](t, numbers) // a named type
	expectReal(t, numbers.Float32)
	expectReal(t, numbers.Float64)
	// Small whole numbers: a fused multiply-add must not change a product.
	expectNumber(t, func() complex64 { return complex(float32(numbers.IntN(9)), float32(numbers.IntN(9))) })
	expectNumber(t, func() complex128 { return complex(float64(numbers.IntN(9)), float64(numbers.IntN(9))) })
}

func TestMinMaxAnyOrder(t *testing.T) {
	nan, negZero := math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct {
		name     string
		a, b     float64
		min, max float64
	}{
		{"a NaN wins over a number", nan, 1, nan, nan},
		{"a NaN wins over infinity", math.Inf(-1), nan, nan, nan},
		{"-0 is smaller than 0", 0, negZero, negZero, 0},
		{"numbers", 3, -2, -2, 3},
	} {
		for _, p := range [][2]float64{{c.a, c.b}, {c.b, c.a}} {
			for n := 1; n <= 50; n++ { // loops and vectors
				low, high, src := make([]float64, n), make([]float64, n), make([]float64, n)
				low[n-1], high[n-1], src[n-1] = p[0], p[0], p[1]
				Min(low, src)
				Max(high, src)
				if !same(low[n-1], c.min) || !same(high[n-1], c.max) {
					t.Errorf("%s: min and max of %v are %v and %v", c.name, p, low[n-1], high[n-1])
				}
			}
		}
	}
}

// same distinguishes 0 from -0 and treats NaNs as equal.
func same(a, b float64) bool {
	return (a != a && b != b) || (a == b && math.Signbit(a) == math.Signbit(b))
}

func TestLocations(t *testing.T) {
	type P = Pair[float64, int32]
	nan := math.NaN()
	for _, c := range []struct {
		name     string
		a, b     P
		min, max P
	}{
		{"the smaller and the larger value", P{1, 5}, P{2, 3}, P{1, 5}, P{2, 3}},
		{"the smaller index of equal values", P{1, 5}, P{1, 3}, P{1, 3}, P{1, 3}},
		{"a NaN wins", P{nan, 5}, P{1, 3}, P{nan, 5}, P{nan, 5}},
		{"the smaller index of two NaNs", P{nan, 5}, P{nan, 3}, P{nan, 3}, P{nan, 3}},
	} {
		for _, p := range [][2]P{{c.a, c.b}, {c.b, c.a}} {
			low, high := []P{p[0]}, []P{p[0]}
			MinLoc(low, []P{p[1]})
			MaxLoc(high, []P{p[1]})
			if fmt.Sprint(low[0], high[0]) != fmt.Sprint(c.min, c.max) {
				t.Errorf("%s: minloc and maxloc of %v are %v and %v, want %v and %v", c.name, p, low[0], high[0], c.min, c.max)
			}
		}
	}
}

// sizes of the kinds, in their order.
var kindSizes = [kindCount]int{1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16, 8, 8, 16, 8, 16, 16, 16, 16}

func TestPredefinedKernels(t *testing.T) {
	count := map[bool]int{}
	for kind := range kindCount {
		for op := range opCount {
			k, err := PredefinedKernel(op, kind)
			pair := kind >= PairInt16Int32
			defined := pair && op >= OpMinLoc ||
				!pair && (op <= OpProd || kind <= Float64 && op <= OpMax || kind <= Uint64 && op <= OpBitXor)
			count[defined]++
			if defined != (err == nil) || (err != nil && !errors.Is(err, ErrArgument)) {
				t.Errorf("%s of %s: error %v; MPI defines it: %v", op, kind, err, defined)
			}
			if err != nil {
				continue
			}
			// The same operands, aligned and not, in one call and element by element;
			// bytes after the last whole element must not change.
			const n = 100
			size := kindSizes[kind]
			in, inout := make([]byte, n*size), make([]byte, n*size)
			for i := range in {
				in[i], inout[i] = byte(i*5+1), byte(i*3+2)
			}
			want := bytes.Clone(inout)
			for i := range n {
				k(want[i*size:(i+1)*size], in[i*size:(i+1)*size])
			}
			for shift := range 3 {
				a, b := make([]byte, len(in)+3), make([]byte, len(in)+3)
				copy(a[shift:], inout)
				copy(b[3-shift:], in)
				k(a[shift:shift+n*size], b[3-shift:])
				if !bytes.Equal(a[shift:shift+n*size], want) {
					t.Errorf("%s of %s: operands shifted by %d give another result", op, kind, shift)
				}
			}
		}
	}
	if count[true] != 8*10+2*4+2*2+8*2 {
		t.Errorf("%d kernels are defined", count[true])
	}
	if _, err := PredefinedKernel(opCount, Int8); err == nil {
		t.Error("an unknown operation has a kernel")
	}
	if _, err := PredefinedKernel(OpSum, kindCount); err == nil {
		t.Error("an unknown kind has a kernel")
	}
}

func TestKernelsDoNotAllocate(t *testing.T) {
	k, err := PredefinedKernel(OpSum, Float64)
	if err != nil {
		t.Fatal(err)
	}
	inout, in := make([]byte, 800), make([]byte, 800)
	if n := testing.AllocsPerRun(100, func() { k(inout, in) }); n != 0 {
		t.Errorf("a kernel made %v allocations, want none", n)
	}
}
