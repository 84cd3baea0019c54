package mpi

// Files for the C interface: the view has a datatype of C.

import (
	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/internal/dtype"
)

// byteFile is a file with its current view.
type byteFile struct {
	file *File
	v    *fileView
}

func (f *byteFile) File() any { return f.file }

func (f *byteFile) OpenView(disp, unit int64, l *dtype.Layout) error {
	v, err := f.v.f.openView("OpenView", disp, unit, l)
	if err == nil {
		f.v = v
	}
	return err
}

func (f *byteFile) Access(a cbinding.FileAccess, off int64, mem dtype.View) (int64, error) {
	return f.v.access(a, off, mem)
}

func (f *byteFile) Start(a cbinding.FileAccess, off int64, mem dtype.View) any {
	return f.v.start(a, off, mem)
}

func (f *byteFile) Seek(off int64, whence int) (int64, error) { return f.v.seek("Seek", off, whence) }

func (f *byteFile) SeekShared(off int64, whence int) error {
	return (&FileView[byte]{f.v}).SeekShared(off, whence)
}

func (f *byteFile) SharedPointer() (int64, error) { return f.v.sharedPosition() }

func (f *byteFile) Offset(element int64) int64 { return f.v.view.OffsetOf(element * f.v.unit) }
