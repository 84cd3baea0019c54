package dtype

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// checkLayout compares all properties of a layout with its typemap.
func checkLayout(t *testing.T, l *Layout, m naive, s *source) {
	t.Helper()
	lo, hi := m.bounds()
	trueLo, trueHi := m.trueBounds()
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"size", l.Size(), m.size()},
		{"lower bound", l.LowerBound(), lo},
		{"extent", l.Extent(), hi - lo},
		{"true lower bound", l.TrueLowerBound(), trueLo},
		{"true extent", l.TrueExtent(), trueHi - trueLo},
	} {
		if c.got != c.want {
			t.Fatalf("%s is %d, want %d by the typemap", c.what, c.got, c.want)
		}
	}

	count := s.pick(0, 3)
	first, last, err := l.Span(count)
	if err != nil {
		t.Fatalf("Span(%d): %v", count, err)
	}
	// Exactly as much memory as needed, so that an access out of bounds panics.
	mem := make([]byte, last-first)
	for i := range mem {
		mem[i] = byte(i*7 + i>>8 + 1)
	}
	v, err := l.View(mem, -first, count)
	if err != nil {
		t.Fatalf("the layout does not fit the memory of Span(%d): %v", count, err)
	}
	if len(mem) > 0 {
		for _, short := range []struct {
			mem    []byte
			origin int64
		}{{mem[1:], -first}, {mem, -first - 1}, {mem, -first + 1}} {
			if _, err := l.View(short.mem, short.origin, count); !errors.Is(err, ErrBounds) {
				t.Fatalf("memory that is one byte short was accepted: %v", err)
			}
		}
	}

	offs := m.offsets(-first, count)
	want := make([]byte, len(offs))
	for i, o := range offs {
		want[i] = mem[o]
	}
	if v.Len() != int64(len(want)) {
		t.Fatalf("packed length is %d, want %d", v.Len(), len(want))
	}
	if flat, ok := v.Contiguous(); ok && !bytes.Equal(flat, want) {
		t.Fatalf("the contiguous memory is not the packed stream")
	}
	got := make([]byte, len(want)+5)
	if n := v.Pack(got, 0); n != len(want) || !bytes.Equal(got[:n], want) {
		t.Fatalf("packed %d bytes\n%v, want\n%v", n, got[:n], want)
	}
	checkPieces(t, v, mem, want, offs, s)
}

// checkPieces packs, lists and unpacks the stream in pieces of random length, and
// unpacks them in random order.
func checkPieces(t *testing.T, v View, mem, want []byte, offs []int64, s *source) {
	t.Helper()
	var cuts []int64
	for pos := int64(0); pos < v.Len(); {
		cuts = append(cuts, pos)
		pos += s.pick(1, 40) + v.Len()/500 // an exhausted source picks 1
	}
	end := func(i int) int64 {
		if i+1 < len(cuts) {
			return cuts[i+1]
		}
		return v.Len()
	}
	back := make([]byte, len(mem))
	target := v
	target.mem = back
	for i := range cuts {
		k := (i*7 + 3) % len(cuts)
		if len(cuts)%7 == 0 {
			k = len(cuts) - 1 - i
		}
		pos, stop := cuts[k], end(k)
		piece := make([]byte, stop-pos)
		if n := v.Pack(piece, pos); n != len(piece) || !bytes.Equal(piece, want[pos:stop]) {
			t.Fatalf("part [%d, %d) packed as %v (%d bytes), want %v", pos, stop, piece, n, want[pos:stop])
		}
		var listed, expected []int64
		for off, n := range v.Segments(pos, stop-pos) {
			listed = append(listed, off, n)
		}
		for _, o := range offs[pos:stop] {
			if k := len(expected); k > 0 && expected[k-2]+expected[k-1] == o {
				expected[k-1]++
			} else {
				expected = append(expected, o, 1)
			}
		}
		if !slices.Equal(listed, expected) {
			t.Fatalf("segments of [%d, %d) are %v, want %v", pos, stop, listed, expected)
		}
		if n := target.Unpack(piece, pos); n != len(piece) {
			t.Fatalf("unpacked %d bytes of part [%d, %d)", n, pos, stop)
		}
	}
	expected := make([]byte, len(mem))
	for i, o := range offs {
		expected[o] = want[i]
	}
	// Overlapping elements may be written in any order, but each byte comes from the
	// same offset, so the result is the same.
	if !bytes.Equal(back, expected) {
		t.Fatalf("unpacked memory is\n%v, want\n%v", back, expected)
	}
}

func TestLayoutsAgreeWithTypemap(t *testing.T) {
	rounds := 5000
	if testing.Short() {
		rounds = 500
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		data := make([]byte, rng.IntN(120))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		s := source{data}
		l, m, err := s.layout(1 + rng.IntN(4))
		if err != nil {
			t.Fatalf("building from %v: %v", data, err)
		}
		checkLayout(t, l, m, &s)
		if t.Failed() {
			t.Fatalf("with the choices %v", data)
		}
	}
}

func FuzzLayout(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{0, 7, 3, 1, 1, 1, 1, 0, 40, 80, 0, 0, 0, 2, 2})
	f.Add([]byte{3, 8, 1, 3, 3, 1, 1, 0, 2, 9, 5, 40, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 200 {
			return
		}
		s := source{data}
		l, m, err := s.layout(4)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.entries) > 20000 {
			return
		}
		checkLayout(t, l, m, &s)
	})
}

func must(t testing.TB) func(*Layout, error) *Layout {
	return func(l *Layout, err error) *Layout {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func TestShapesStaySmall(t *testing.T) {
	ok := must(t)
	f64 := ok(Basic(8, 8))
	million := int64(1) << 20
	even := make([]int64, million)
	for i := range even {
		even[i] = int64(3 * i)
	}
	ones := slices.Repeat([]int64{1}, int(million))
	rows := ok(Vector(million, 1, 4, f64))
	for _, c := range []struct {
		name string
		l    *Layout
		kind shapeKind
		deep int
	}{
		{"a contiguous run is one block", ok(Contiguous(million, f64)), shapeBlock, 1},
		{"a dense vector is one block", ok(Vector(million, 4, 4, f64)), shapeBlock, 1},
		{"a strided vector is one loop", rows, shapeLoop, 2},
		{"an evenly indexed layout is one loop", ok(Indexed(ones, even, f64)), shapeLoop, 2},
		{"a whole subarray is one block", ok(Subarray([]int64{9, 8, 7}, []int64{9, 8, 7}, []int64{0, 0, 0}, f64)), shapeBlock, 1},
		{"whole rows of a subarray are one block", ok(Subarray([]int64{9, 8}, []int64{3, 8}, []int64{2, 0}, f64)), shapeBlock, 1},
		{"a box in a cube is two loops", ok(Subarray([]int64{9, 8, 7}, []int64{3, 3, 3}, []int64{1, 1, 1}, f64)), shapeLoop, 3},
		{"columns that continue each other are one loop", ok(Contiguous(5, ok(Resized(rows, 0, million*32)))), shapeLoop, 2},
		{"adjacent members of a struct are one block",
			ok(Struct([]int64{1, 2, 1}, []int64{0, 8, 24}, []*Layout{f64, f64, f64})), shapeBlock, 1},
	} {
		depth := 0
		for s := c.l.shape; s != nil; s = s.kid {
			depth++
		}
		if c.l.shape.kind != c.kind || depth != c.deep || len(c.l.shape.offs) > 0 {
			t.Errorf("%s: it is of kind %d, %d deep, with %d listed offsets", c.name, c.l.shape.kind, depth, len(c.l.shape.offs))
		}
	}
}

func TestStandardBounds(t *testing.T) {
	ok := must(t)
	f64, i8, i32 := ok(Basic(8, 8)), ok(Basic(1, 1)), ok(Basic(4, 4))
	doubleChar := ok(Struct([]int64{1, 1}, []int64{0, 8}, []*Layout{f64, i8}))
	for _, c := range []struct {
		name                string
		l                   *Layout
		size, lower, extent int64
	}{
		{"MPI-4.1 example 5.1: {(double,0),(char,8)} is padded to 16", doubleChar, 9, 0, 16},
		{"example 5.2: three of them", ok(Contiguous(3, doubleChar)), 27, 0, 48},
		{"a resized member fixes the bounds of the struct",
			ok(Struct([]int64{1, 1}, []int64{0, 100}, []*Layout{ok(Resized(i32, -3, 9)), i32})), 8, -3, 9},
		{"a resized part that is not used leaves no bound",
			ok(Struct([]int64{0, 1}, []int64{0, 8}, []*Layout{ok(Resized(i32, -3, 9)), i32})), 4, 8, 4},
		{"negative stride begins below the origin", ok(Vector(3, 1, -2, i32)), 12, -16, 20},
		{"the padding of the last part counts", ok(Hvector(2, 1, 17, doubleChar)), 18, 0, 40},
		{"nothing has no bounds", ok(Contiguous(0, doubleChar)), 0, 0, 0},
	} {
		if c.l.Size() != c.size || c.l.LowerBound() != c.lower || c.l.Extent() != c.extent {
			t.Errorf("%s: size %d, lower bound %d, extent %d; want %d, %d, %d", c.name,
				c.l.Size(), c.l.LowerBound(), c.l.Extent(), c.size, c.lower, c.extent)
		}
	}
	if !f64.IsContiguous() || doubleChar.IsContiguous() {
		t.Error("a double is contiguous, a padded struct is not")
	}
}

func TestInvalidArguments(t *testing.T) {
	ok := must(t)
	i32 := ok(Basic(4, 4))
	far := ok(Resized(i32, 0, math.MaxInt64/2))
	one := []int64{1}
	for _, c := range []struct {
		name string
		make func() (*Layout, error)
	}{
		{"negative size", func() (*Layout, error) { return Basic(-1, 1) }},
		{"alignment 0", func() (*Layout, error) { return Basic(1, 0) }},
		{"nil base of Contiguous", func() (*Layout, error) { return Contiguous(1, nil) }},
		{"nil base of Vector", func() (*Layout, error) { return Vector(1, 1, 1, nil) }},
		{"nil base of Indexed", func() (*Layout, error) { return Indexed(one, one, nil) }},
		{"nil base of Subarray", func() (*Layout, error) { return Subarray(one, one, []int64{0}, nil) }},
		{"nil base of Resized", func() (*Layout, error) { return Resized(nil, 0, 1) }},
		{"nil member", func() (*Layout, error) { return Struct(one, one, []*Layout{nil}) }},
		{"negative count", func() (*Layout, error) { return Contiguous(-1, i32) }},
		{"negative block length", func() (*Layout, error) { return Hindexed([]int64{-1}, one, i32) }},
		{"negative member", func() (*Layout, error) { return Struct([]int64{-1}, one, []*Layout{i32}) }},
		{"lists of different length", func() (*Layout, error) { return Indexed(one, nil, i32) }},
		{"members of different number", func() (*Layout, error) { return Struct(one, one, nil) }},
		{"subarray over the edge", func() (*Layout, error) { return Subarray([]int64{4}, []int64{3}, []int64{2}, i32) }},
		{"subarray of no dimension", func() (*Layout, error) { return Subarray(nil, nil, nil, i32) }},
		{"size beyond 64 bits", func() (*Layout, error) { return Contiguous(math.MaxInt64/2, i32) }},
		{"extent beyond 64 bits", func() (*Layout, error) { return Contiguous(4, far) }},
		{"stride beyond 64 bits", func() (*Layout, error) { return Vector(2, 1, 8, far) }},
		{"displacement beyond 64 bits", func() (*Layout, error) { return IndexedBlock(1, []int64{math.MinInt64}, i32) }},
		{"true extent beyond 64 bits", func() (*Layout, error) {
			return Hindexed([]int64{1, 1}, []int64{math.MinInt64 / 2 * 2, math.MaxInt64 - 8}, i32)
		}},
		{"resized beyond 64 bits", func() (*Layout, error) { return Resized(i32, math.MaxInt64, 1) }},
		{"array beyond 64 bits", func() (*Layout, error) {
			return Subarray([]int64{1 << 40, 1 << 40}, []int64{1, 1}, []int64{0, 0}, i32)
		}},
	} {
		if l, err := c.make(); !errors.Is(err, ErrArgument) || l != nil {
			t.Errorf("%s: got %v, %v; want ErrArgument", c.name, l, err)
		}
	}
	if _, err := i32.View(make([]byte, 8), 0, -1); !errors.Is(err, ErrArgument) {
		t.Errorf("Over accepts a negative count: %v", err)
	}
	if _, err := far.View(make([]byte, 8), 0, 5); !errors.Is(err, ErrArgument) {
		t.Errorf("Over accepts elements beyond 64 bits: %v", err)
	}
	if _, err := i32.View(make([]byte, 8), math.MaxInt64, 1); !errors.Is(err, ErrBounds) {
		t.Errorf("Over accepts an origin at the end of 64 bits: %v", err)
	}
}

func TestViewEdges(t *testing.T) {
	ok := must(t)
	column := ok(Vector(4, 1, 4, ok(Basic(2, 2))))
	mem := make([]byte, 32)
	v, err := column.View(mem, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, pos := range []int64{-1, 8, 9, math.MaxInt64} {
		if n := v.Pack(make([]byte, 4), pos); n != 0 {
			t.Errorf("packed %d bytes at %d, outside of the stream", n, pos)
		}
		if n := v.Unpack(make([]byte, 4), pos); n != 0 {
			t.Errorf("unpacked %d bytes at %d, outside of the stream", n, pos)
		}
	}
	if n := v.Unpack(make([]byte, 100), 6); n != 2 {
		t.Errorf("a message longer than the elements unpacked %d bytes, want the 2 that fit", n)
	}
	if n := (View{}).Pack(mem, 0); n != 0 || (View{}).Len() != 0 {
		t.Errorf("the zero View is not empty")
	}
	seen := 0
	for range v.Segments(0, 8) {
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("listing stopped after %d segments, want 2", seen)
	}

	// Displacements that are absolute addresses: the origin is minus the
	// address of the memory.
	const address = int64(0x7f0000001000)
	abs := ok(Hindexed([]int64{1, 1}, []int64{address + 8, address}, ok(Basic(4, 4))))
	copy(mem, "abcdefghijkl")
	v, err = abs.View(mem, -address, 1)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 8)
	if v.Pack(got, 0); string(got) != "ijklabcd" {
		t.Errorf("absolute displacements packed %q", got)
	}
}

func TestPackingDoesNotAllocate(t *testing.T) {
	ok := must(t)
	f64 := ok(Basic(8, 8))
	mem, packed := make([]byte, 1<<16), make([]byte, 1<<16)
	for name, l := range map[string]*Layout{
		"contiguous": f64,
		"vector":     ok(Vector(64, 3, 5, f64)),
		"list":       ok(Indexed([]int64{1, 2, 3, 1}, []int64{9, 3, 20, 0}, f64)),
		"nested":     ok(Hvector(3, 2, 3000, ok(Subarray([]int64{4, 4, 4}, []int64{2, 3, 2}, []int64{1, 1, 1}, f64)))),
	} {
		allocs := testing.AllocsPerRun(100, func() {
			v, err := l.View(mem, 0, 2)
			if err != nil {
				t.Fatal(err)
			}
			n := v.Pack(packed, 5)
			v.Unpack(packed[:n], 5)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations to pack and unpack, want none", name, allocs)
		}
	}
}

// The segments of a layout without memory are those of a view.
func TestLayoutSegments(t *testing.T) {
	base, err := Basic(4, 4)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Vector(3, 2, 5, base)
	if err != nil {
		t.Fatal(err)
	}
	_, hi, err := l.Span(2)
	if err != nil {
		t.Fatal(err)
	}
	v, err := l.View(make([]byte, hi), 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	var got, want [][2]int64
	for at, n := range l.Segments(2) {
		got = append(got, [2]int64{at, n})
	}
	for at, n := range v.Segments(0, v.Len()) {
		want = append(want, [2]int64{at, n})
	}
	if !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("the segments are %v, want %v", got, want)
	}
}
