package mpi_test

// Layouts in messages. internal/dtype tests packing; these tests check that the right
// elements arrive at the right displacements, whichever call completes.

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func made[T any](l *mpi.Layout[T], err error) *mpi.Layout[T] {
	if err != nil {
		panic(err)
	}
	return l
}

// layouts of a grid of 6 × 8 numbers, with the displacements of their elements, in order.
func gridLayouts() []struct {
	name    string
	layout  *mpi.Layout[int32]
	offsets []int
} {
	column := made(mpi.Vector[int32](6, 1, 8))
	pair := made(mpi.Contiguous[int32](2))
	return []struct {
		name    string
		layout  *mpi.Layout[int32]
		offsets []int
	}{
		{"a row", made(mpi.Contiguous[int32](8)), []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"a column", column, []int{0, 8, 16, 24, 32, 40}},
		{"two columns", made(made(column.Resized(1)).Times(2)), []int{0, 8, 16, 24, 32, 40, 1, 9, 17, 25, 33, 41}},
		{"pairs", made(mpi.Vector[int32](3, 2, 5)), []int{0, 1, 5, 6, 10, 11}},
		{"backwards", made(mpi.Indexed[int32]([]int{1, 2, 1}, []int{40, 10, 3})), []int{40, 10, 11, 3}},
		{"blocks", made(mpi.IndexedBlock[int32](3, []int{4, 20, 45})), []int{4, 5, 6, 20, 21, 22, 45, 46, 47}},
		{"a window", made(mpi.Subarray[int32]([]int{6, 8}, []int{2, 3}, []int{3, 4})), []int{28, 29, 30, 36, 37, 38}},
		{"parts", made(mpi.Struct([]int{7, 30}, []*mpi.Layout[int32]{made(mpi.Vector[int32](2, 1, 3)), pair})), []int{7, 10, 30, 31}},
		{"one piece inside", made(mpi.Subarray[int32]([]int{48}, []int{5}, []int{9})), []int{9, 10, 11, 12, 13}},
		{"nothing", made(mpi.Contiguous[int32](0)), nil},
	}
}

// Each layout is sent and received: as itself, from and to a plain slice, and
// completed by every kind of call.
func TestLayoutsCarryTheirElements(t *testing.T) {
	completions := map[string]func(mpi.Request) error{
		"Wait": waitErr,
		"Test": func(r mpi.Request) error {
			for {
				if _, done, err := r.Test(); done {
					return err
				}
			}
		},
		"WaitContext": func(r mpi.Request) error { _, err := r.WaitContext(context.Background()); return err },
		"WaitAll":     func(r mpi.Request) error { return mpi.WaitAll(r) },
		"WaitAny":     func(r mpi.Request) error { _, _, err := mpi.WaitAny(r); return err },
		"WaitSome":    func(r mpi.Request) error { _, err := mpi.WaitSome(r); return err },
		"TestAll": func(r mpi.Request) error {
			for {
				if done, err := mpi.TestAll(r); done {
					return err
				}
			}
		},
	}
	mpitest.Sizes(t, []int{1, 2, 3}, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		grid := make([]int32, 48)
		for i := range grid {
			grid[i] = int32(1000*c.Rank() + i)
		}
		for _, k := range gridLayouts() {
			if k.layout.Len() != len(k.offsets) {
				t.Fatalf("%s: Len is %d, want %d", k.name, k.layout.Len(), len(k.offsets))
			}
			check := func(what string, got []int32) {
				t.Helper()
				want := make([]int32, 48)
				for _, p := range k.offsets {
					want[p] = int32(1000*prev + p)
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s, %s: got %v, want %v", k.name, what, got, want)
				}
			}
			for name, complete := range completions {
				in := make([]int32, 48)
				r := mpi.IrecvLayout(c, in, k.layout, prev, 1)
				s := mpi.IsendLayout(c, grid, k.layout, next, 1)
				noError(t, complete(r), name)
				noError(t, waitErr(s), "IsendLayout")
				check(name, in)
				barrier(t, c) // map order differs between ranks
			}
			// Layout to slice: the elements in order.
			flat := make([]int32, len(k.offsets)+1)
			r := mpi.Irecv(c, flat, prev, 2)
			noError(t, mpi.SendLayout(c, grid, k.layout, next, 2), "SendLayout")
			st, err := r.Wait()
			noError(t, err, "Recv of a layout")
			if n, _ := mpi.Count[int32](st); n != len(k.offsets) {
				t.Fatalf("%s: %d elements came, want %d", k.name, n, len(k.offsets))
			}
			for i, p := range k.offsets {
				if flat[i] != int32(1000*prev+p) {
					t.Fatalf("%s as a slice: element %d is %d, want %d", k.name, i, flat[i], 1000*prev+p)
				}
			}
			// Slice to layout, and a message shorter than the layout.
			for _, n := range []int{len(k.offsets), len(k.offsets) / 2} {
				s := mpi.Isend(c, flat[:n], next, 3)
				in := make([]int32, 48)
				st, err := mpi.RecvLayout(c, in, k.layout, prev, 3)
				noError(t, err, "RecvLayout of a slice")
				noError(t, waitErr(s), "Isend")
				if st.Bytes != 4*n {
					t.Fatalf("%s: status %+v for %d elements", k.name, st, n)
				}
				before := (prev + c.Size() - 1) % c.Size()
				for i, p := range k.offsets {
					want := int32(0)
					if i < n {
						want = int32(1000*before + p)
					}
					if in[p] != want {
						t.Fatalf("%s: place %d is %d, want %d", k.name, p, in[p], want)
					}
				}
			}
			packed := make([]int32, 48)
			n, err := k.layout.Pack(grid, packed)
			noError(t, err, "Pack")
			out := make([]int32, 48)
			noError(t, k.layout.Unpack(packed[:n], out), "Unpack")
			for _, p := range k.offsets {
				if out[p] != grid[p] {
					t.Fatalf("%s: place %d is %d after Pack and Unpack, want %d", k.name, p, out[p], grid[p])
				}
			}
		}
	})
}

// Large strided messages go by rendezvous; elements may be structs.
func TestLayoutsOfLargeMessages(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		const rows, cols = 1000, 50
		l := made(mpi.Vector[particle](rows, 2, cols))
		buf := make([]particle, rows*cols)
		for i := range buf {
			buf[i].ID = uint32(c.Rank()<<24 + i)
		}
		peer := 1 - c.Rank()
		r := mpi.IrecvLayout(c, buf[2:], l, peer, 1) // columns 2 and 3
		noError(t, mpi.SendLayout(c, buf, l, peer, 1), "SendLayout")
		noError(t, waitErr(r), "IrecvLayout")
		for i := range buf {
			want := uint32(c.Rank()<<24 + i)
			if col := i % cols; col == 2 || col == 3 {
				want = uint32(peer<<24 + i - 2)
			}
			if buf[i].ID != want {
				t.Fatalf("element %d is %x, want %x", i, buf[i].ID, want)
			}
		}
	})
}

// A message longer than the layout: its first part is received.
func TestLayoutTruncates(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		in := make([]byte, 9)
		r := mpi.IrecvLayout(c, in, made(mpi.Vector[byte](3, 1, 4)), 0, 1)
		noError(t, mpi.Send(c, []byte{1, 2, 3, 4, 5}, 0, 1), "Send")
		wantClass(t, waitErr(r), mpi.ErrTruncate, "five elements for a layout of three")
		if want := []byte{1, 0, 0, 0, 2, 0, 0, 0, 3}; !reflect.DeepEqual(in, want) {
			t.Errorf("got %v, want %v", in, want)
		}
	})
}

func TestIrecvLayoutCancelled(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		l := made(mpi.Vector[byte](3, 1, 2))
		in := make([]byte, 5)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_, err := mpi.IrecvLayout(c, in, l, 0, 1).WaitOrCancel(ctx)
		wantClass(t, err, mpi.ErrPending, "IrecvLayout without a message")
		noError(t, mpi.Send(c, []byte{1, 2, 3}, 0, 1), "Send")
		_, err = mpi.IrecvLayout(c, in, l, 0, 1).WaitOrCancel(context.Background())
		noError(t, err, "IrecvLayout after one that gave up")
		if want := []byte{1, 0, 2, 0, 3}; !reflect.DeepEqual(in, want) {
			t.Errorf("got %v, want %v", in, want)
		}
	})
}

func TestLayoutsThatDoNotFit(t *testing.T) {
	for name, err := range map[string]error{
		"a negative count":        second(mpi.Vector[int](-1, 1, 1)),
		"a negative length":       second(mpi.Contiguous[int](-2)),
		"lists of two lengths":    second(mpi.Indexed[int]([]int{1}, []int{1, 2})),
		"a window outside":        second(mpi.Subarray[int]([]int{4, 4}, []int{2, 2}, []int{3, 0})),
		"no dimension":            second(mpi.Subarray[int](nil, nil, nil)),
		"a nil part":              second(mpi.Struct([]int{0}, []*mpi.Layout[int]{nil})),
		"parts without offsets":   second(mpi.Struct(nil, []*mpi.Layout[int]{made(mpi.Contiguous[int](1))})),
		"a stride beyond 64 bits": second(mpi.Vector[int](1<<40, 1, 1<<40)),
		"a negative repetition":   second(made(mpi.Contiguous[int](1)).Times(-1)),
	} {
		wantClass(t, err, mpi.ErrArg, name)
	}
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		column := made(mpi.Vector[int64](6, 1, 8))
		short := make([]int64, 40) // the last place is 40
		for what, err := range map[string]error{
			"SendLayout":   mpi.SendLayout(c, short, column, 0, 1),
			"IsendLayout":  waitErr(mpi.IsendLayout(c, short, column, 0, 1)),
			"IrecvLayout":  waitErr(mpi.IrecvLayout(c, short, column, 0, 1)),
			"RecvLayout":   second(mpi.RecvLayout(c, short, column, 0, 1)),
			"a place < 0":  mpi.SendLayout(c, short, made(mpi.IndexedBlock[int64](1, []int{-1})), 0, 1),
			"Pack":         second(column.Pack(short, make([]int64, 6))),
			"Unpack":       column.Unpack(make([]int64, 6), short),
			"an empty one": mpi.SendLayout(c, nil, column, 0, 1),
		} {
			wantClass(t, err, mpi.ErrBuffer, what)
		}
		err := mpi.SendLayout(c, short, column, 0, 1)
		if !strings.Contains(err.Error(), "elements 0 to 40") || !strings.Contains(err.Error(), "has 40") {
			t.Errorf("error %q does not say which elements are missing", err)
		}
		wantClass(t, mpi.SendLayout[int64](c, short, nil, 0, 1), mpi.ErrType, "a nil layout")
		wantClass(t, mpi.SendLayout(c, []string{"x"}, made(mpi.Contiguous[string](1)), 0, 1), mpi.ErrType, "a layout of strings")
		wantClass(t, mpi.SendLayout(c, make([]int64, 41), column, 7, 1), mpi.ErrRank, "rank 7")
		wantClass(t, second(column.Pack(make([]int64, 41), make([]int64, 5))), mpi.ErrCount, "Pack without room")
		wantClass(t, column.Unpack(make([]int64, 7), make([]int64, 41)), mpi.ErrCount, "Unpack of too much")
		noError(t, waitErr(mpi.IrecvLayout(c, make([]int64, 41), column, mpi.ProcNull, 1)), "IrecvLayout from ProcNull")
		if _, ok, _ := c.Iprobe(0, mpi.AnyTag); ok {
			t.Error("a refused layout was sent")
		}
	})
}

func second[T any](_ T, err error) error { return err }

// A contiguous layout is sent and received without a copy.
func TestContiguousLayoutsAreNotCopied(t *testing.T) {
	unchecked(t)
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		l := made(mpi.Subarray[byte]([]int{1 << 20}, []int{1 << 19}, []int{1 << 18}))
		out, in := make([]byte, 1<<20), make([]byte, 1<<20)
		once := func() {
			r := mpi.IrecvLayout(c, in, l, 0, 1)
			s := mpi.IsendLayout(c, out, l, 0, 1)
			noError(t, waitErr(r), "IrecvLayout")
			noError(t, waitErr(s), "IsendLayout")
		}
		once()
		if n := testing.AllocsPerRun(20, once); n > 0.5 {
			t.Errorf("a contiguous layout costs %v allocations a message", n)
		}
	})
}

func ExampleVector() {
	column, err := mpi.Vector[int](3, 1, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	matrix := []int{
		1, 2, 3, 4,
		5, 6, 7, 8,
		9, 10, 11, 12,
	}
	out := make([]int, column.Len())
	column.Pack(matrix[1:], out) // the second column
	fmt.Println(out)
	// Output: [2 6 10]
}
