package mpi

// Views of a file, and the calls that read and write: each is a row of arguments for
// fileView.access or fileView.start.

import (
	"io"
	"math"
	"os"
	"sync"

	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/internal/mpiio"
)

// FileView is the part of a file that a rank sees, as elements of T. Offsets count the elements that
// the view has: the rank need not know where in the file they are. Each view has its own file pointers,
// one of the rank and one that all ranks share; both begin at 0.
//
// Calls whose names end in All or Ordered are collective: all ranks make them, in the same order. They
// gather small pieces of all ranks into long accesses to the file. The others are independent. Calls
// return the number of elements, and io.EOF if a read ends at the end of the file.
type FileView[T Elem] struct{ v *fileView }

type fileView struct {
	f      *file
	view   mpiio.View
	unit   int64 // bytes of an element
	number int   // of the view, the same on all ranks

	mu  sync.Mutex
	pos int64 // the pointer of the rank, in bytes

	agreed int          // file.changes when others was exchanged
	others []mpiio.View // of the ranks, at those that access the file for them
}

// OpenView returns a view of a file: the elements that the layout selects, from byte disp on. The layout
// is repeated, an extent apart, to the end of the file. A nil layout selects all elements. Ranks pass layouts
// of their own, such as their block of an array ([Subarray]). All ranks that have opened the file call it,
// with a type of the same size.
func OpenView[T Elem](f *File, disp int64, l *Layout[T]) (*FileView[T], error) {
	const op = "OpenView"
	c := f.f.c
	if err := admit[T](&c.w.types); err != nil {
		return nil, c.refuse(ErrType, op, "%w", err)
	}
	if sizeOf[T]() == 0 {
		return nil, c.refuse(ErrType, op, "the elements have no bytes")
	}
	if l == nil {
		var err error
		if l, err = Contiguous[T](1); err != nil {
			return nil, err
		}
	}
	v, err := f.f.openView(op, disp, int64(sizeOf[T]()), l.d)
	if err != nil {
		return nil, err
	}
	return &FileView[T]{v}, nil
}

func (f *file) openView(op string, disp, unit int64, l *dtype.Layout) (*fileView, error) {
	v, err := mpiio.NewView(disp, l)
	if err == nil && v.Repeats() && f.flag&accessMode != os.O_RDONLY {
		err = errOverlap
	}
	if err != nil {
		return nil, f.c.refuse(ErrType, op, "rank %d, file %s: %w", f.c.rank, f.name, err)
	}
	view := &fileView{f: f, view: v, unit: unit, number: f.views}
	f.views++
	if err := f.shared.prepare(view.number); err != nil {
		return nil, err
	}
	return view, nil
}

// fileAccess is a call that reads or writes.
type fileAccess = cbinding.FileAccess

const (
	byPointer = cbinding.ByPointer
	byShared  = cbinding.ByShared
	byOrder   = cbinding.ByOrder
)

// move makes a blocking call.
func (v *FileView[T]) move(a fileAccess, off int64, buf []T) (int, error) {
	mem, err := v.memory(a.Name, buf)
	if err != nil {
		return 0, err
	}
	n, err := v.v.access(a, off, mem)
	count := int(n / v.v.unit)
	if err == nil && !a.Write && count < len(buf) {
		err = io.EOF
	}
	return count, err
}

// start makes a nonblocking call.
func (v *FileView[T]) start(a fileAccess, off int64, buf []T) Request {
	mem, err := v.memory(a.Name, buf)
	if err != nil {
		return v.v.f.c.refusedRequest(err)
	}
	return v.v.start(a, off, mem)
}

// memory returns a slice as a view of its bytes.
func (v *FileView[T]) memory(op string, buf []T) (dtype.View, error) {
	mem, err := v.v.f.bytes.View(rawBytes(buf), 0, int64(len(buf))*v.v.unit)
	if err != nil {
		return dtype.View{}, v.v.f.c.refuse(ErrCount, op, "%w", err)
	}
	return mem, nil
}

// ReadAt reads the elements from off on.
func (v *FileView[T]) ReadAt(buf []T, off int64) (int, error) {
	return v.move(fileAccess{Name: "ReadAt"}, off, buf)
}

// WriteAt writes the elements from off on.
func (v *FileView[T]) WriteAt(buf []T, off int64) (int, error) {
	return v.move(fileAccess{Name: "WriteAt", Write: true}, off, buf)
}

// ReadAtAll is [FileView.ReadAt] of all ranks together.
func (v *FileView[T]) ReadAtAll(buf []T, off int64) (int, error) {
	return v.move(fileAccess{Name: "ReadAtAll", All: true}, off, buf)
}

// WriteAtAll is [FileView.WriteAt] of all ranks together.
func (v *FileView[T]) WriteAtAll(buf []T, off int64) (int, error) {
	return v.move(fileAccess{Name: "WriteAtAll", Write: true, All: true}, off, buf)
}

// Read reads the elements from the file pointer on, and advances it.
func (v *FileView[T]) Read(buf []T) (int, error) {
	return v.move(fileAccess{Name: "Read", By: byPointer}, 0, buf)
}

// Write writes the elements from the file pointer on, and advances it.
func (v *FileView[T]) Write(buf []T) (int, error) {
	return v.move(fileAccess{Name: "Write", Write: true, By: byPointer}, 0, buf)
}

// ReadAll is [FileView.Read] of all ranks together.
func (v *FileView[T]) ReadAll(buf []T) (int, error) {
	return v.move(fileAccess{Name: "ReadAll", All: true, By: byPointer}, 0, buf)
}

// WriteAll is [FileView.Write] of all ranks together.
func (v *FileView[T]) WriteAll(buf []T) (int, error) {
	return v.move(fileAccess{Name: "WriteAll", Write: true, All: true, By: byPointer}, 0, buf)
}

// ReadShared reads from the shared pointer on, and advances it: ranks that call it at the same time get
// elements that follow each other, in any order. They all have the same view.
func (v *FileView[T]) ReadShared(buf []T) (int, error) {
	return v.move(fileAccess{Name: "ReadShared", By: byShared}, 0, buf)
}

// WriteShared is the same for writing, for example of a log.
func (v *FileView[T]) WriteShared(buf []T) (int, error) {
	return v.move(fileAccess{Name: "WriteShared", Write: true, By: byShared}, 0, buf)
}

// ReadOrdered is [FileView.ReadShared] of all ranks together, in the order of ranks.
func (v *FileView[T]) ReadOrdered(buf []T) (int, error) {
	return v.move(fileAccess{Name: "ReadOrdered", All: true, By: byOrder}, 0, buf)
}

// WriteOrdered is [FileView.WriteShared] of all ranks together, in the order of ranks.
func (v *FileView[T]) WriteOrdered(buf []T) (int, error) {
	return v.move(fileAccess{Name: "WriteOrdered", Write: true, All: true, By: byOrder}, 0, buf)
}

// IreadAt starts a [FileView.ReadAt]. The status of the request has the number of bytes ([Count]).
func (v *FileView[T]) IreadAt(buf []T, off int64) Request {
	return v.start(fileAccess{Name: "IreadAt"}, off, buf)
}

// IwriteAt starts a [FileView.WriteAt].
func (v *FileView[T]) IwriteAt(buf []T, off int64) Request {
	return v.start(fileAccess{Name: "IwriteAt", Write: true}, off, buf)
}

// IreadAtAll starts a [FileView.ReadAtAll].
func (v *FileView[T]) IreadAtAll(buf []T, off int64) Request {
	return v.start(fileAccess{Name: "IreadAtAll", All: true}, off, buf)
}

// IwriteAtAll starts a [FileView.WriteAtAll].
func (v *FileView[T]) IwriteAtAll(buf []T, off int64) Request {
	return v.start(fileAccess{Name: "IwriteAtAll", Write: true, All: true}, off, buf)
}

// Iread starts a [FileView.Read]. The pointer advances at once, by the length of buf.
func (v *FileView[T]) Iread(buf []T) Request {
	return v.start(fileAccess{Name: "Iread", By: byPointer}, 0, buf)
}

// Iwrite starts a [FileView.Write].
func (v *FileView[T]) Iwrite(buf []T) Request {
	return v.start(fileAccess{Name: "Iwrite", Write: true, By: byPointer}, 0, buf)
}

// IreadAll starts a [FileView.ReadAll].
func (v *FileView[T]) IreadAll(buf []T) Request {
	return v.start(fileAccess{Name: "IreadAll", All: true, By: byPointer}, 0, buf)
}

// IwriteAll starts a [FileView.WriteAll].
func (v *FileView[T]) IwriteAll(buf []T) Request {
	return v.start(fileAccess{Name: "IwriteAll", Write: true, All: true, By: byPointer}, 0, buf)
}

// IreadShared starts a [FileView.ReadShared].
func (v *FileView[T]) IreadShared(buf []T) Request {
	return v.start(fileAccess{Name: "IreadShared", By: byShared}, 0, buf)
}

// IwriteShared starts a [FileView.WriteShared].
func (v *FileView[T]) IwriteShared(buf []T) Request {
	return v.start(fileAccess{Name: "IwriteShared", Write: true, By: byShared}, 0, buf)
}

// Seek sets the file pointer of the rank: off elements from the beginning of the view, from the pointer, or
// from the first element after the end of the file (io.SeekStart, io.SeekCurrent, io.SeekEnd). It returns
// the new one.
func (v *FileView[T]) Seek(off int64, whence int) (int64, error) {
	return v.v.seek("Seek", off, whence)
}

// SeekShared sets the shared pointer. All ranks call it, with the same arguments.
func (v *FileView[T]) SeekShared(off int64, whence int) error {
	return v.v.f.inOrder("SeekShared", CallFile, func() error { return v.v.seekShared("SeekShared", off, whence) })
}

// SharedPointer returns the shared pointer.
func (v *FileView[T]) SharedPointer() (int64, error) { return v.v.sharedPosition() }

// Offset returns the offset in the file, in bytes, of an element of the view.
func (v *FileView[T]) Offset(element int64) int64 { return v.v.view.OffsetOf(element * v.v.unit) }

func (v *fileView) seek(op string, off int64, whence int) (int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	to, err := v.target(op, off, whence, v.pos/v.unit)
	if err != nil {
		return v.pos / v.unit, err
	}
	v.pos = to * v.unit
	return to, nil
}

// target returns where a pointer is after a call of Seek.
func (v *fileView) target(op string, off int64, whence int, now int64) (int64, error) {
	switch whence {
	case seekStart:
		now = 0
	case seekCurrent:
	case seekEnd:
		size, err := v.f.size()
		if err != nil {
			return 0, v.f.failure(op, -1, err)
		}
		now = (v.view.CountBefore(size) + v.unit - 1) / v.unit
	default:
		return 0, v.f.c.refuse(ErrArg, op, "whence is %d", whence)
	}
	if to := now + off; to >= 0 && to <= math.MaxInt64/v.unit {
		return to, nil
	}
	return 0, v.f.c.refuse(ErrArg, op, "rank %d, file %s: the offset %d from %d is outside of the file", v.f.c.rank, v.f.name, off, now)
}

const (
	seekStart   = io.SeekStart
	seekCurrent = io.SeekCurrent
	seekEnd     = io.SeekEnd
)

func (v *fileView) seekShared(op string, off int64, whence int) error {
	c := v.f.c
	err := c.barrier(op) // accesses of others come first
	if err == nil && c.rank == 0 {
		var now, to int64
		now, err = v.sharedPosition()
		if err == nil {
			to, err = v.target(op, off, whence, now)
		}
		if err == nil {
			_, err = v.f.shared.update(v.number, to, Replace)
		}
	}
	return v.f.agree(op, err)
}

func (v *fileView) sharedPosition() (int64, error) {
	return v.f.shared.update(v.number, 0, NoOp)
}
