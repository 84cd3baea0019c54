package mpi

// Layouts: which elements of a slice make up a message (MPI-4.1 chapter 5, derived
// datatypes). A contiguous layout is sent from its memory. Others are packed into a
// buffer of the library, and unpacked by the call that completes the receive. A message
// is a sequence of elements, so it may be sent with one layout and received with
// another, or as a plain slice.

import (
	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// Layout selects elements of a slice, in an order: a column of a matrix, a block of a
// grid, a list of elements. All its numbers count elements of T, from the beginning of
// the slice that it is used with. A Layout is immutable, and any number of goroutines
// may use it.
type Layout[T Elem] struct{ d *dtype.Layout }

// Contiguous returns the layout of n consecutive elements.
func Contiguous[T Elem](n int) (*Layout[T], error) {
	return layout[T]("Contiguous", func(base *dtype.Layout) (*dtype.Layout, error) {
		return dtype.Contiguous(int64(n), base)
	})
}

// Vector returns the layout of count blocks of blocklen elements that begin stride
// elements apart. A column of a row-major matrix with rows of n elements is
// Vector(rows, 1, n).
func Vector[T Elem](count, blocklen, stride int) (*Layout[T], error) {
	return layout[T]("Vector", func(base *dtype.Layout) (*dtype.Layout, error) {
		return dtype.Vector(int64(count), int64(blocklen), int64(stride), base)
	})
}

// Indexed returns the layout of blocks of blocklens[i] elements that begin at element
// displs[i].
func Indexed[T Elem](blocklens, displs []int) (*Layout[T], error) {
	return layout[T]("Indexed", func(base *dtype.Layout) (*dtype.Layout, error) {
		return dtype.Indexed(wide(blocklens), wide(displs), base)
	})
}

// IndexedBlock returns the layout of blocks of blocklen elements that begin at the
// elements displs.
func IndexedBlock[T Elem](blocklen int, displs []int) (*Layout[T], error) {
	return layout[T]("IndexedBlock", func(base *dtype.Layout) (*dtype.Layout, error) {
		return dtype.IndexedBlock(int64(blocklen), wide(displs), base)
	})
}

// Subarray returns the layout of a block of a row-major array of any number of
// dimensions. In each dimension, the array has sizes elements and the block subsizes,
// beginning at starts. The extent of the layout is that of the whole array.
func Subarray[T Elem](sizes, subsizes, starts []int) (*Layout[T], error) {
	return layout[T]("Subarray", func(base *dtype.Layout) (*dtype.Layout, error) {
		return dtype.Subarray(wide(sizes), wide(subsizes), wide(starts), base)
	})
}

// Struct returns a sequence of layouts: parts[i] begins at element displs[i].
func Struct[T Elem](displs []int, parts []*Layout[T]) (*Layout[T], error) {
	size := int64(sizeOf[T]())
	ones, at, inner := make([]int64, len(parts)), make([]int64, len(displs)), make([]*dtype.Layout, len(parts))
	for i, p := range parts {
		ones[i] = 1
		if p != nil {
			inner[i] = p.d
		}
	}
	for i, d := range displs {
		at[i] = int64(d) * size
	}
	return toLayout[T]("Struct")(dtype.Struct(ones, at, inner))
}

// Times returns n consecutive copies of the layout, an extent apart.
func (l *Layout[T]) Times(n int) (*Layout[T], error) {
	return toLayout[T]("Times")(dtype.Contiguous(int64(n), l.d))
}

// Resized returns the same elements with another extent, in elements. The extent is
// the distance between the copies of Times: for a column of a matrix resized to 1,
// Times returns adjacent columns.
func (l *Layout[T]) Resized(extent int) (*Layout[T], error) {
	return toLayout[T]("Resized")(dtype.Resized(l.d, l.d.LowerBound(), int64(extent)*int64(sizeOf[T]())))
}

// Len returns the number of elements in a message with this layout.
func (l *Layout[T]) Len() int { return l.inElements(l.d.Size()) }

// Extent returns the distance between two consecutive copies of the layout.
func (l *Layout[T]) Extent() int { return l.inElements(l.d.Extent()) }

func (l *Layout[T]) inElements(bytes int64) int {
	if size := int64(sizeOf[T]()); size > 0 {
		return int(bytes / size)
	}
	return 0
}

func layout[T Elem](op string, build func(base *dtype.Layout) (*dtype.Layout, error)) (*Layout[T], error) {
	base, err := dtype.Basic(int64(sizeOf[T]()), 1)
	if err != nil {
		return toLayout[T](op)(nil, err)
	}
	return toLayout[T](op)(build(base))
}

// toLayout converts the result of package dtype to a Layout or an error of this package.
func toLayout[T Elem](op string) func(*dtype.Layout, error) (*Layout[T], error) {
	return func(d *dtype.Layout, err error) (*Layout[T], error) {
		if err != nil {
			return nil, (*Comm)(nil).refuse(ErrArg, op, "%w", err)
		}
		return &Layout[T]{d}, nil
	}
}

func wide(in []int) []int64 {
	out := make([]int64, len(in))
	for i, v := range in {
		out[i] = int64(v)
	}
	return out
}

// Pack copies the elements of the layout in buf to the beginning of out and returns
// their number.
func (l *Layout[T]) Pack(buf, out []T) (int, error) {
	v, err := l.viewBytes(nil, "Pack", rawBytes(buf))
	if err != nil {
		return 0, err
	}
	if len(out) < l.Len() {
		return 0, (*Comm)(nil).refuse(ErrCount, "Pack", "the layout has %d elements, out has room for %d", l.Len(), len(out))
	}
	v.Pack(rawBytes(out), 0)
	return l.Len(), nil
}

// Unpack copies in to the elements of the layout in buf. in may be shorter than the
// layout.
func (l *Layout[T]) Unpack(in, buf []T) error {
	v, err := l.viewBytes(nil, "Unpack", rawBytes(buf))
	if err != nil {
		return err
	}
	if len(in) > l.Len() {
		return (*Comm)(nil).refuse(ErrCount, "Unpack", "%d elements do not fit a layout of %d", len(in), l.Len())
	}
	v.Unpack(rawBytes(in), 0)
	return nil
}

// viewBytes applies the layout to a slice, or returns an error if it does not fit.
func (l *Layout[T]) viewBytes(c *Comm, op string, mem []byte) (dtype.View, error) {
	if l == nil {
		return dtype.View{}, c.refuse(ErrType, op, "the layout is nil")
	}
	v, err := l.d.View(mem, 0, 1)
	if err == nil {
		return v, nil
	}
	size := int64(max(1, sizeOf[T]()))
	lo, hi, _ := l.d.Span(1)
	return v, c.refuse(ErrBuffer, op, "the layout uses the elements %d to %d, the slice has %d: %w",
		lo/size, hi/size-1, int64(len(mem))/size, err)
}

// SendLayout is [Send] of the elements of buf that the layout selects.
func SendLayout[T Elem](c *Comm, buf []T, l *Layout[T], dst, tag int) error {
	b, err := outgoing(c, "SendLayout", buf, l)
	if err != nil {
		return err
	}
	return send(c, "SendLayout", elements[T](b), dst, tag, p2p.Standard)
}

// IsendLayout is [Isend] of the elements of buf that the layout selects.
func IsendLayout[T Elem](c *Comm, buf []T, l *Layout[T], dst, tag int) Request {
	b, err := outgoing(c, "IsendLayout", buf, l)
	if err != nil {
		return c.refusedRequest(err)
	}
	return startSend(c, "IsendLayout", elements[T](b), dst, tag, p2p.Standard)
}

// outgoing returns the bytes of a message: the slice itself, or a packed copy.
func outgoing[T Elem](c *Comm, op string, buf []T, l *Layout[T]) ([]byte, error) {
	v, err := l.view(c, op, buf)
	if err != nil {
		return nil, err
	}
	if flat, ok := v.Contiguous(); ok {
		return flat, nil
	}
	p := c.w.beginPacking()
	packed := make([]byte, v.Len())
	v.Pack(packed, 0)
	p.endPack()
	return packed, nil
}

func (l *Layout[T]) view(c *Comm, op string, buf []T) (dtype.View, error) {
	b, err := bytesOf(&c.w.types, buf)
	if err != nil {
		return dtype.View{}, c.refuse(ErrType, op, "%w", err)
	}
	return l.viewBytes(c, op, b)
}

// RecvLayout is [Recv] into the elements of buf that the layout selects. A message
// with fewer elements fills the first of them.
func RecvLayout[T Elem](c *Comm, buf []T, l *Layout[T], src, tag int) (Status, error) {
	h := c.begin("RecvLayout", CallRecv, src, tag, l.Len()*sizeOf[T]())
	st, err := irecvLayout(c, "RecvLayout", buf, l, src, tag).wait(engine.NoContext)
	h.end(st, err)
	return st, err
}

// IrecvLayout is [Irecv] into the elements of buf that the layout selects. They are
// set when the request is complete.
func IrecvLayout[T Elem](c *Comm, buf []T, l *Layout[T], src, tag int) Request {
	h := c.beginStart("IrecvLayout", CallRecv, src, tag, l.Len()*sizeOf[T]())
	return h.finishStart(irecvLayout(c, "IrecvLayout", buf, l, src, tag))
}

func irecvLayout[T Elem](c *Comm, op string, buf []T, l *Layout[T], src, tag int) Request {
	v, err := l.view(c, op, buf)
	if err != nil {
		return c.refusedRequest(err)
	}
	if flat, ok := v.Contiguous(); ok {
		return irecvBytes[T](c, op, flat, src, tag)
	}
	packed := make([]byte, v.Len())
	r := irecvBytes[T](c, op, packed, src, tag)
	if r.op.Active() {
		r = r.with(func(more *requestMore) { more.landing = &packedMessage{v, packed} })
	}
	return r
}

// landing unpacks received data when its request is complete; n is the length of the
// message.
type landing interface{ unpack(n int) }

type packedMessage struct {
	view   dtype.View
	packed []byte
}

func (l *packedMessage) unpack(n int) { l.view.Unpack(l.packed[:n], 0) }
