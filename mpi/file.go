package mpi

// Parallel files (MPI-4.1 chapter 14): opening, closing and what concerns the whole file.
// file_view.go has the calls that read and write, file_access.go what one rank does alone,
// file_collective.go what the ranks do for each other. internal/mpiio computes who does what.

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/internal/mpiio"
)

// File is a file that the ranks of a communicator have opened together. It is a view of all its
// bytes, and so an io.ReaderAt, io.WriterAt, io.ReadWriteSeeker and io.Closer. [OpenView] makes views
// of elements and of parts of the file.
//
// Offsets of different ranks that do not overlap need no synchronization. What a rank has written is
// read by others after [File.Sync], or after any other synchronization if all of them run on one host or
// the file system is coherent; MPI's rules (MPI-4.1 section 14.6) demand Sync on both sides.
type File struct {
	*FileView[byte]
	f *file
}

// FileHints are settings of a file. The zero value is right for most.
type FileHints struct {
	// CollectiveRead and CollectiveWrite decide whether the ranks exchange data in collective
	// calls: "always", "never", or "" where short pieces make it worthwhile.
	CollectiveRead, CollectiveWrite string
	// BufferSize is the memory in bytes of a rank that reads or writes for others; 0 means 4 MB.
	BufferSize int
	// Aggregators is the number of ranks that read or write for others; 0 means two on each host.
	Aggregators int
	// Alignment is a length in bytes, such as that of a stripe of the file system. Each part of
	// the file that a rank accesses for others begins at a multiple; 0 means the block size.
	Alignment int
	// DirectRead and DirectWrite let long accesses bypass the cache of the system (O_DIRECT of Linux), for
	// data that nobody reads again soon. [File.Hints] says false where the file system cannot.
	DirectRead, DirectWrite bool
}

// file is the part of File that does not depend on the view.
type file struct {
	c       *Comm // for the file alone
	os      *os.File
	direct  directFile
	bytes   *dtype.Layout // of a byte
	name    string
	flag    int
	hints   FileHints
	changes int   // of the hints, from 1 on
	block   int64 // of the file system
	shared  sharedPointer
	calls   callQueue
	atomic  atomic.Bool
	views   int // opened until now
	closed  atomic.Bool
}

const defaultBuffer = 4 << 20

// OpenFile opens a file. flag is that of os.OpenFile: os.O_RDONLY, os.O_WRONLY or os.O_RDWR, with
// os.O_CREATE, os.O_EXCL, os.O_TRUNC and os.O_APPEND, which sets all file pointers to the end. A file
// is created with mode 0666 before umask. All ranks of c call it, with the same name and flag. If
// one of them cannot open the file, all of them get an error.
func (c *Comm) OpenFile(name string, flag int, hints FileHints) (*File, error) {
	h := c.beginCreate("OpenFile", CallCreate)
	f, err := c.openFile(name, flag, hints)
	return f, h.finish(err)
}

func (c *Comm) openFile(name string, flag int, hints FileHints) (*File, error) {
	const op = "OpenFile"
	if err := c.intra(op); err != nil {
		return nil, err
	}
	d, err := c.dup(op)
	if err != nil {
		return nil, err
	}
	d.SetName(c.Name() + ".file")
	d.e.DropAtFailure(d.ctx)
	f := &file{c: d, name: name, flag: flag, changes: 1}
	if f.bytes, err = dtype.Basic(1, 1); err == nil {
		err = f.open(op)
	}
	if err == nil {
		f.setHints(hints)
	}
	if err == nil {
		err = f.shared.open(d)
	}
	if err != nil {
		if f.os != nil {
			_ = f.closeOS() // nothing was written
		}
		return nil, errors.Join(err, d.abandon())
	}
	v, err := f.openView(op, 0, 1, f.bytes)
	if err != nil {
		return nil, err
	}
	file := &File{&FileView[byte]{v}, f}
	if flag&os.O_APPEND != 0 {
		_, err = file.Seek(0, seekEnd)
		if err == nil {
			err = v.seekShared(op, 0, seekEnd)
		}
	}
	return file, err
}

// open opens the file: first one rank, which may create it, then the others.
func (f *file) open(op string) error {
	flag := f.flag &^ os.O_APPEND // pwrite would ignore its offset
	var mine error
	if f.c.rank == 0 {
		f.os, mine = os.OpenFile(f.name, flag, 0o666)
	}
	first := []int64{int64(f.flag), errnoOf(mine)}
	if err := bcastArgs(f.c, first, 0).callInside(op); err != nil {
		return err
	}
	switch {
	case f.c.rank == 0:
	case first[1] != 0:
		mine = errnoFrom(first[1])
	case first[0] != int64(f.flag):
		mine = errNotSame
	default:
		f.os, mine = os.OpenFile(f.name, flag&^(os.O_CREATE|os.O_EXCL|os.O_TRUNC), 0o666)
	}
	if mine == nil {
		f.block = blockSize(f.os)
	}
	return f.agree(op, mine)
}

// agree returns an error on all ranks if one of them has one: its own, or the cause of another.
func (f *file) agree(op string, mine error) error {
	c := f.c
	worst := []int64{errnoOf(mine)<<32 | int64(c.rank)}
	if mine == nil {
		worst[0] = 0
	}
	if err := allreduce(c, op, worst, worst, Max); err != nil {
		return errors.Join(mine, err)
	}
	if mine != nil {
		return f.failure(op, -1, mine)
	}
	if errno := worst[0] >> 32; errno != 0 {
		return f.failure(op, -1, fmt.Errorf("on rank %d: %w", worst[0]&(1<<32-1), errnoFrom(errno)))
	}
	return nil
}

// inOrder makes a collective call on the file, after those before it.
func (f *file) inOrder(name string, kind CallKind, call func() error) error {
	h := f.c.beginCreate(name, kind)
	if f.closed.Load() {
		return h.finish(f.refuseClosed(name))
	}
	before, done := f.calls.join()
	defer close(done)
	wait(before)
	return h.finish(call())
}

// callQueue makes the collective calls of a rank on a file one after the other, in the order in which
// the rank has made them: nonblocking ones run in goroutines.
type callQueue struct {
	mu   sync.Mutex
	last chan struct{}
}

// join returns what ends with the call before, nil if there is none, and what the caller closes at its
// end.
func (q *callQueue) join() (before, done chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before, done = q.last, make(chan struct{})
	q.last = done
	return before, done
}

func wait(before chan struct{}) {
	if before != nil {
		<-before
	}
}

// Close closes the file, after all requests are complete. All ranks call it.
func (f *File) Close() error {
	return f.f.inOrder("Close", CallFree, f.f.close)
}

func (f *file) close() error {
	err := f.c.barrier("Close") // requests of others, and the shared pointer
	f.closed.Store(true)
	return errors.Join(err, f.shared.close(), f.fail("Close", f.closeOS()), f.c.free())
}

// Name returns the name with which the file was opened.
func (f *File) Name() string { return f.f.name }

// Group returns the ranks that have opened the file.
func (f *File) Group() *Group { return f.f.c.Group() }

// Size returns the size of the file in bytes.
func (f *File) Size() (int64, error) {
	n, err := f.f.size()
	return n, f.f.fail("Size", err)
}

func (f *file) size() (int64, error) {
	st, err := f.os.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// SetSize truncates or extends the file. All ranks call it, with the same size.
func (f *File) SetSize(size int64) error {
	return f.f.byFirst("SetSize", size, f.f.os.Truncate)
}

// Preallocate allocates storage for the first size bytes, and extends the file if it is shorter. All
// ranks call it, with the same size.
func (f *File) Preallocate(size int64) error {
	return f.f.byFirst("Preallocate", size, func(n int64) error { return preallocate(f.f.os, n) })
}

// byFirst changes the size of the file by a call of rank 0.
func (f *file) byFirst(op string, size int64, change func(int64) error) error {
	return f.inOrder(op, CallFile, func() error {
		if size < 0 {
			return f.c.refuse(ErrArg, op, "the size is %d", size)
		}
		err := f.c.barrier(op) // accesses of others come first
		if err == nil && f.c.rank == 0 {
			err = change(size)
		}
		return f.agree(op, err)
	})
}

// Sync writes all data of all ranks to the storage device. What a rank has written before is read by
// others after it. All ranks call it.
func (f *File) Sync() error {
	c := f.f.c
	return f.f.inOrder("Sync", CallFile, func() error {
		err := c.barrier("Sync")
		nodes := c.nodesOf()
		if first := mpiio.FirstOf(nodes, nodes[c.rank]); err == nil && first == c.rank && f.f.flag&accessMode != os.O_RDONLY {
			err = f.f.os.Sync()
		}
		return f.f.agree("Sync", err)
	})
}

// SetAtomic selects atomic mode, in which accesses that overlap happen one after the other, and what a
// rank has written is read by others at once. All ranks call it.
func (f *File) SetAtomic(on bool) error {
	return f.f.inOrder("SetAtomic", CallFile, func() error {
		f.f.atomic.Store(on)
		return f.f.c.barrier("SetAtomic")
	})
}

// Atomic reports whether atomic mode is selected.
func (f *File) Atomic() bool { return f.f.atomic.Load() }

// SetHints changes the settings of the file. All ranks call it, with the same hints.
func (f *File) SetHints(hints FileHints) error {
	return f.f.inOrder("SetHints", CallFile, func() error {
		f.f.setHints(hints)
		f.f.changes++
		return f.f.c.barrier("SetHints")
	})
}

// Hints returns the settings of the file.
func (f *File) Hints() FileHints { return f.f.hints }

// extend makes the file at least n bytes long.
func extend(f *os.File, n int64) error {
	st, err := f.Stat()
	if err == nil && st.Size() < n {
		err = f.Truncate(n)
	}
	return err
}
