package dtype

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
)

// Comparison of the vector instructions with the loops in Go, which are called with
// single elements and so never use them.

// vectorKinds are the kinds that each operation has vector instructions for.
var vectorKinds = map[Op][]Kind{
	OpSum:        {Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float32, Float64, Complex64, Complex128},
	OpProd:       {Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float32, Float64},
	OpMin:        {Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float32, Float64},
	OpMax:        {Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float32, Float64},
	OpLogicalAnd: {Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64},
	OpLogicalOr:  {Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64},
	OpLogicalXor: {Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64},
	OpBitAnd:     {Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64},
	OpBitOr:      {Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64},
	OpBitXor:     {Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64},
}

// edges are bit patterns for which instructions may differ: as float64, their upper
// halves as float32, and as integers of all sizes.
var edges = []uint64{
	0, 1, 2, math.MaxUint64, 1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32,
	0x7F80_7F80_8080_0101, 0x00FF_FF00_00FF_FF00, 0x1234_5678_9ABC_DEF0,
	math.Float64bits(1), math.Float64bits(-1.5), math.Float64bits(math.MaxFloat64), math.Float64bits(1e-310),
	math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)),
	0x7FF8_0000_0000_0001, 0xFFF8_0000_0000_0002, // quiet NaNs
	0x7FF0_0000_0000_0005, 0xFFF0_0000_0000_0009, // signalling NaNs
	0x8000_0000_8000_0000, 0x7FC0_0001_7F80_0001, 0xFFC0_0002_FF80_0005, // -0 and NaNs of float32
	0x7F80_0000_FF80_0000, 0x3F80_0000_BFC0_0000, 0x0000_0001_8000_0001,
}

// edgePairs returns all pairs of edges.
func edgePairs() (inout, in []byte) {
	for _, a := range edges {
		for _, b := range edges {
			inout = binary.LittleEndian.AppendUint64(inout, a)
			in = binary.LittleEndian.AppendUint64(in, b)
		}
	}
	return inout, in
}

// compareVectors reduces the operands with vectors and with the loop. The destination
// begins shift bytes after an aligned address; shift must suit the kind.
func compareVectors(op Op, kind Kind, inout, in []byte, shift int) error {
	k, err := PredefinedKernel(op, kind)
	if err != nil {
		return err
	}
	size := kindSizes[kind]
	want := bytes.Clone(inout)
	for i := 0; i < len(in); i += size {
		k(want[i:i+size], in[i:i+size])
	}
	const guard = 0xA5
	room := bytes.Repeat([]byte{guard}, shift+len(inout)+64)
	got := room[shift : shift+len(inout)]
	copy(got, inout)
	if !reduceVectors(op, kind, &got[0], &in[0], len(in)) {
		return fmt.Errorf("%s of %s has no vector instructions", op, kind)
	}
	for i := 0; i < len(in); i += size {
		if g, w := got[i:i+size], want[i:i+size]; !sameNumber(op, kind, g, w) {
			return fmt.Errorf("%s of %s: element %d of %d, %d bytes off: %x with %x is %x, want %x",
				op, kind, i/size, len(in)/size, shift, inout[i:i+size], in[i:i+size], g, w)
		}
	}
	for i, b := range room {
		if b != guard && (i < shift || i >= shift+len(inout)) {
			return fmt.Errorf("%s of %s: byte %d, outside the %d bytes from %d, has changed", op, kind, i, len(inout), shift)
		}
	}
	return nil
}

// sameNumber compares bits, except that of two NaNs a sum or a product may keep either.
func sameNumber(op Op, kind Kind, a, b []byte) bool {
	if bytes.Equal(a, b) || op > OpProd {
		return bytes.Equal(a, b)
	}
	switch kind {
	case Float32:
		x, y := binary.LittleEndian.Uint32(a), binary.LittleEndian.Uint32(b)
		return x == y || math.IsNaN(float64(math.Float32frombits(x))) && math.IsNaN(float64(math.Float32frombits(y)))
	case Float64:
		x, y := binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)
		return x == y || math.IsNaN(math.Float64frombits(x)) && math.IsNaN(math.Float64frombits(y))
	case Complex64:
		return sameNumber(op, Float32, a[:4], b[:4]) && sameNumber(op, Float32, a[4:], b[4:])
	case Complex128:
		return sameNumber(op, Float64, a[:8], b[:8]) && sameNumber(op, Float64, a[8:], b[8:])
	}
	return false
}

// laneSize returns Go's alignment of the kind.
func laneSize(kind Kind) int {
	if kind == Complex64 || kind == Complex128 {
		return kindSizes[kind] / 2
	}
	return kindSizes[kind]
}

func TestVectorsAgreeWithLoops(t *testing.T) {
	if !haveVectors {
		t.Skip("this build or processor has no vector instructions")
	}
	inout, in := edgePairs()
	for op, kinds := range vectorKinds {
		for _, kind := range kinds {
			if err := compareVectors(op, kind, inout, in, 0); err != nil {
				t.Error(err)
				continue
			}
			size := kindSizes[kind]
			for n := vectorSize; n <= 320; n += size {
				at := n * 7 % (len(in) - 400) / size * size
				for shift := 0; shift < vectorSize; shift += laneSize(kind) {
					// The other operand may be unaligned.
					if err := compareVectors(op, kind, inout[at:at+n], in[at+shift%7:at+shift%7+n], shift); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// reduceVectors must return false, without effect, for all other operations and kinds.
func TestUnsupportedVectors(t *testing.T) {
	for op := range opCount {
		for kind := range kindCount {
			if _, err := PredefinedKernel(op, kind); err != nil || slices.Contains(vectorKinds[op], kind) {
				continue
			}
			inout, in := make([]byte, 64), bytes.Repeat([]byte{3}, 64)
			if reduceVectors(op, kind, &inout[0], &in[0], 64) || !bytes.Equal(inout, make([]byte, 64)) {
				t.Errorf("%s of %s: there are vector instructions, or the destination has changed", op, kind)
			}
		}
	}
}

// reaches reports whether a sum of many elements uses vectors. A sum element by element
// carries the first element through to the last if the destination is the source
// shifted by one, an overlap that only this test uses.
func reaches[T Integer | float32 | float64]() bool {
	v := slices.Repeat([]T{2}, 1000)
	Sum(v[1:], v)
	return v[999] < 10 // element by element: 2000
}

func TestLongSlicesReachVectors(t *testing.T) {
	type celsius float64
	for name, got := range map[string]bool{
		"float64": reaches[float64](),
		"celsius": vectorized(OpSum, make([]celsius, 1000), make([]celsius, 1000)),
		"float32": reaches[float32](),
		"int":     reaches[int](),
		"uint16":  reaches[uint16](),
	} {
		if got != haveVectors {
			t.Errorf("a sum of 1000 %s reaches vector instructions: %v, want %v", name, got, haveVectors)
		}
	}
}

// A long reduction is split into pieces without effect on the result.
func TestVectorsInPieces(t *testing.T) {
	const n = 5*bytesAtOnce/4 + 7
	dst, src := make([]int32, n), make([]int32, n)
	for i := range dst {
		dst[i], src[i] = int32(i), int32(3*i)
	}
	Sum(dst, src)
	for i := range dst {
		if dst[i] != int32(4*i) {
			t.Fatalf("element %d of %d is %d, want %d", i, n, dst[i], 4*i)
		}
	}
}

func TestReductionsDoNotAllocate(t *testing.T) {
	type name int64
	if n := testing.AllocsPerRun(100, func() {
		var a, b [100]float64 // must not escape to the heap
		Sum(a[:], b[:])
		Max(a[:], b[:])
		var c, d [100]name
		Prod(c[:], d[:])
		BitXor(c[:], d[:])
		LogicalOr(c[:], d[:])
	}); n != 0 {
		t.Errorf("reductions made %v allocations, want none", n)
	}
}

func FuzzVectors(f *testing.F) {
	inout, in := edgePairs()
	f.Add(uint8(OpMax), uint8(Float64), uint8(1), append(inout[:320:320], in[:320]...))
	f.Add(uint8(OpProd), uint8(Int8), uint8(5), append(inout[:77:77], in[:77]...))
	f.Fuzz(func(t *testing.T, op, kind, shift uint8, data []byte) {
		o, k := Op(op)%opCount, Kind(kind)%kindCount
		if !haveVectors || !slices.Contains(vectorKinds[o], k) {
			return
		}
		n := len(data) / 2 / kindSizes[k] * kindSizes[k]
		if n < vectorSize {
			return
		}
		at := int(shift) % vectorSize / laneSize(k) * laneSize(k)
		if err := compareVectors(o, k, data[:n], data[n:2*n], at); err != nil {
			t.Error(err)
		}
	})
}
