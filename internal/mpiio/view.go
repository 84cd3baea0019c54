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
	// overlaps says that a byte of the file is in the view more than once.
	overlaps bool
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
	first, last, end := int64(-1), int64(-1), int64(0)
	for off, n := range layout.Segments(1) {
		if off < last || off < 0 {
			return v, fmt.Errorf("%w: the piece at byte %d follows the one at byte %d; the displacements of a file type increase and are not negative",
				ErrView, off, max(last, 0))
		}
		if first < 0 {
			first = off
		}
		v.overlaps = v.overlaps || off < end
		last, end = off, max(end, off+n)
	}
	if next := first + layout.Extent(); next < last {
		return v, fmt.Errorf("%w: its extent is %d, and its last piece is %d bytes from the first, so the next copy of the file type begins before it",
			ErrView, layout.Extent(), last-first)
	} else if next < end {
		v.overlaps = true
	}
	return v, nil
}

// Overlaps reports whether a byte of the file is in the view more than once: then it is only read.
func (v View) Overlaps() bool { return v.overlaps }

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

// CountBefore returns the number of bytes of the view that are before an offset, which is the position of
// the first that is not.
func (v View) CountBefore(off int64) int64 {
	size, extent := v.layout.Size(), v.layout.Extent()
	rel := off - v.disp - v.layout.TrueLowerBound()
	if size == 0 || rel <= 0 {
		return 0
	}
	pos := int64(0)
	if extent > 0 { // the copies that begin before the offset, but for the last, are before it
		pos = min(rel/extent, math.MaxInt64/size-1) * size
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
	return r.View.OffsetOf(r.Pos), r.View.OffsetOf(r.Pos+r.N-1) + 1
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
	return !v.overlaps && v.Pieces(size) > 1 && size/v.layout.Blocks() < finePiece && v.layout.Extent() <= sparse*size
}

// sparse is how many times as long a range of a file may be as the bytes in it for which it is read.
const sparse = 8
