package cbinding

import "github.com/muster-mpi/muster/internal/dtype"

// File is a file whose view has a datatype of C. Positions count elements of the view.
type File interface {
	// File returns the file for all other calls: a *mpi.File.
	File() any
	// OpenView replaces the view, which has elements of unit bytes. Its pointers are 0. All ranks call it.
	OpenView(disp, unit int64, l *dtype.Layout) error
	// Access reads or writes, and returns the number of bytes.
	Access(a FileAccess, off int64, mem dtype.View) (int64, error)
	// Start starts to do so. The result is an mpi.Request.
	Start(a FileAccess, off int64, mem dtype.View) any
	// Seek, SeekShared, SharedPointer and Offset are those of mpi.FileView.
	Seek(off int64, whence int) (int64, error)
	SeekShared(off int64, whence int) error
	SharedPointer() (int64, error)
	Offset(element int64) int64
}

// FileAccess is a call that reads or writes.
type FileAccess struct {
	Name  string // of the function
	Write bool
	All   bool // collective
	By    FilePointer
}

// FilePointer says where in the file a call begins.
type FilePointer uint8

const (
	ByOffset  FilePointer = iota // an argument
	ByPointer                    // the pointer of the rank
	ByShared                     // the shared pointer
	ByOrder                      // the shared pointer, in the order of ranks
)
