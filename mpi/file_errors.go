package mpi

// Errors of files: they name rank, file, offset and cause.

import (
	"errors"
	"io/fs"
	"syscall"
)

var errNotSame = errors.New("the ranks open the file with different flags")

// fileErrors are the classes of errors of the system (MPI-4.1 section 14.7).
var fileErrors = []struct {
	cause error
	class Class
}{
	{errNotSame, ErrNotSame},
	{fs.ErrNotExist, ErrNoSuchFile}, {fs.ErrExist, ErrFileExists}, {syscall.EROFS, ErrAccess}, {fs.ErrPermission, ErrAccess},
	{syscall.ENOSPC, ErrNoSpace}, {syscall.EDQUOT, ErrNoSpace}, {syscall.EFBIG, ErrNoSpace},
	{syscall.ENAMETOOLONG, ErrBadFile}, {syscall.ENOTDIR, ErrBadFile}, {syscall.EISDIR, ErrBadFile}, {syscall.ELOOP, ErrBadFile},
	{syscall.EBADF, ErrAccess}, {syscall.EBUSY, ErrFileInUse}, {syscall.ETXTBSY, ErrFileInUse},
	{errors.ErrUnsupported, ErrUnsupported}, {fs.ErrClosed, ErrFile},
}

// failure returns the error of a call on the file; offset is negative if there is none.
func (f *file) failure(op string, offset int64, err error) error {
	class := ErrIO
	var ours *Error
	if errors.As(err, &ours) {
		class = ours.Class
	}
	for _, e := range fileErrors {
		if errors.Is(err, e.cause) {
			class = e.class
			break
		}
	}
	if path, ok := err.(*fs.PathError); ok { // the name of the file follows
		err = path.Err
	}
	if offset < 0 {
		return f.c.refuse(class, op, "rank %d, file %s: %w", f.c.rank, f.name, err)
	}
	return f.c.refuse(class, op, "rank %d, file %s, byte %d: %w", f.c.rank, f.name, offset, err)
}

// fail is failure, or nil without an error.
func (f *file) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return f.failure(op, -1, err)
}

func (f *file) refuseClosed(op string) error {
	return f.c.refuse(ErrFile, op, "rank %d, file %s: it is closed", f.c.rank, f.name)
}

// errnoOf returns a number for an error, which errnoFrom on another rank makes an error again; 0 means
// none.
func errnoOf(err error) int64 {
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno) && errno != 0:
		return int64(errno)
	case errors.Is(err, errNotSame):
		return notSame
	}
	return int64(syscall.EIO)
}

// notSame stands for errNotSame; no system has so large a number.
const notSame = 1 << 20

func errnoFrom(n int64) error {
	if n == notSame {
		return errNotSame
	}
	return syscall.Errno(n)
}
