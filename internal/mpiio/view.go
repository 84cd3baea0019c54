package mpiio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/muster-mpi/muster/internal/dtype"
)

// View is what a rank sees of a file: the bytes of a layout, repeated an extent apart from the
// displacement on (MPI-4.1 section 14.3).
type View struct {
	disp   int64
	layout *dtype.Layout
	flat   bool // the bytes from disp on
	// alone says that positions do not follow each other in the order of their offsets, or that a
	// byte is in the view more than once: its accesses are not divided between ranks.
	alone bool
	// repeats says that the layout has a byte more than once.
	repeats bool
}

// ErrView reports a view that MPI does not allow.
var ErrView = errors.New("mpiio: invalid view")

// NewView returns the view of a layout at an offset of the file. Its pieces must be in the order of
// their offsets, and not be before the displacement (MPI-4.1 section 14.1.1, filetype).
func NewView(disp int64, layout *dtype.Layout) (View, error) {
	v := View{disp: disp, layout: layout}
	if disp < 0 {
		return v, fmt.Errorf("%w: the displacement is %d", ErrView, disp)
	}
	v.flat = layout.Size() > 0 && layout.IsContiguous() && layout.TrueLowerBound() == 0
	if v.flat || layout.Size() == 0 {
		return v, nil
	}
	o := layout.Order()
	switch {
	case !o.Increasing:
		return v, fmt.Errorf("%w: a piece of the file type begins before the one that it follows; the displacements of a file type increase", ErrView)
	case o.First < 0:
		return v, fmt.Errorf("%w: a piece of the file type begins %d bytes before its origin; the displacements of a file type are not negative", ErrView, -o.First)
	}
	v.repeats = o.Repeats
	v.alone = o.Repeats || o.First+layout.Extent() < o.End // the next copy begins within this one
	return v, nil
}

// IsAlone reports whether the view is accessed without other ranks.
func (v View) IsAlone() bool { return v.alone }

// Repeats reports whether the file type has a byte more than once: then it is only read
// (MPI-4.1 section 14.3).
func (v View) Repeats() bool { return v.repeats }

// Empty reports whether the view has no bytes.
func (v View) Empty() bool { return v.layout.Size() == 0 }

// MapOnto returns the view in memory that holds the file from the offset lo on. Only the parts of it
// that are in the memory may be packed or unpacked.
func (v View) MapOnto(mem []byte, lo int64) dtype.View { return v.layout.Stream(mem, v.disp-lo) }

// Extents iterates over the pieces of the file that the bytes [pos, pos+n) of the view are: offset
// and length, adjacent pieces merged.
func (v View) Extents(pos, n int64) iter.Seq2[int64, int64] {
	return v.MapOnto(nil, 0).Segments(pos, n)
}

// OffsetOf returns the offset of a position, or the largest number if no file has it.
func (v View) OffsetOf(pos int64) int64 {
	if v.flat && pos <= math.MaxInt64-v.disp {
		return v.disp + pos
	}
	size, extent := v.layout.Size(), v.layout.Extent()
	if size == 0 || extent > 0 && pos/size > (math.MaxInt64-v.disp-v.layout.TrueLowerBound()-v.layout.TrueExtent())/extent {
		return math.MaxInt64
	}
	for off := range v.Extents(pos, 1) {
		return off
	}
	return math.MaxInt64
}

// IsPiece reports whether the bytes [pos, pos+n) of the view are one piece, without a visit of its
// layout, and returns its offset.
func (v View) IsPiece(pos, n int64) (off int64, ok bool) {
	return v.disp + pos, v.flat && pos <= math.MaxInt64-v.disp-n
}

// CountBefore returns the number of bytes of the view that are before an offset, which is the position of
// the first that is not.
func (v View) CountBefore(off int64) int64 {
	size, extent := v.layout.Size(), v.layout.Extent()
	rel := off - v.disp - v.layout.TrueLowerBound()
	if size == 0 || rel <= 0 {
		return 0
	}
	pos := int64(0)
	if extent > 0 { // the copies that end before the offset
		if span := v.layout.TrueExtent(); rel >= span {
			pos = min((rel-span)/extent+1, math.MaxInt64/size-1) * size
		}
	}
	// The position is in this copy, or at its end.
	lo, hi := int64(0), size
	for lo < hi {
		mid := lo + (hi-lo)/2
		if v.OffsetOf(pos+mid) >= off {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return pos + lo
}

// Append appends the view to b, for Decode.
func (v View) Append(b []byte) []byte {
	return v.layout.Append(binary.AppendVarint(b, v.disp))
}

// Decode returns the view that Append has appended to an empty slice.
func Decode(b []byte) (View, error) {
	disp, n := binary.Varint(b)
	if n <= 0 {
		return View{}, fmt.Errorf("%w: it is incomplete", ErrView)
	}
	l, err := dtype.Decode(b[n:])
	if err != nil {
		return View{}, err
	}
	return NewView(disp, l)
}

// Request is an access of a rank: n bytes of its view from a position on.
type Request struct {
	View View
	Pos  int64
	N    int64
}

// Bounds returns the range of the file in which the bytes are; an empty one if there are none.
func (r Request) Bounds() (lo, hi int64) {
	if r.N == 0 {
		return 0, 0
	}
	if r.View.alone {
		return r.boundsOfCopies()
	}
	return r.View.OffsetOf(r.Pos), r.View.OffsetOf(r.Pos+r.N-1) + 1
}

// boundsOfCopies returns the range in which the copies of the layout are that the request touches.
func (r Request) boundsOfCopies() (lo, hi int64) {
	size, span := r.View.layout.Size(), r.View.layout.TrueExtent()
	first, last := r.View.OffsetOf(r.Pos/size*size), r.View.OffsetOf((r.Pos+r.N-1)/size*size)
	lo, hi = min(first, last), max(first, last)
	if lo < 0 || hi > math.MaxInt64-span {
		return math.MaxInt64, math.MinInt64
	}
	return lo, hi + span
}

// ClipTo returns the part of the request that is in a range of the file.
func (r Request) ClipTo(lo, hi int64) Request {
	begin, end := max(r.Pos, r.View.CountBefore(lo)), min(r.Pos+r.N, r.View.CountBefore(hi))
	return Request{r.View, begin, max(0, end-begin)}
}

// Pieces returns about how many pieces of the file n bytes of the view are.
func (v View) Pieces(n int64) int64 {
	size := v.layout.Size()
	if n == 0 || size == 0 || v.layout.IsContiguous() {
		return min(n, 1)
	}
	return max(1, int64(float64(n)/float64(size)*float64(v.layout.Blocks())))
}

// finePiece is the length of a piece below which it takes longer to access the piece than to copy what
// surrounds it.
const finePiece = 4 << 10

// IsFine reports whether the view has pieces so short, and so close to each other, that they are read with
// what is between them.
func (v View) IsFine() bool {
	size := v.layout.Size()
	return !v.alone && v.Pieces(size) > 1 && size/v.layout.Blocks() < finePiece && v.layout.Extent() <= sparse*size
}

// sparse is how many times as long a range of a file may be as the bytes in it for which it is read.
const sparse = 8
