package mpi

// Reading and writing by one rank: positions, pieces and locks.

import (
	"errors"
	"io"
	"math"
	"os"

	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/internal/mpiio"
)

const (
	// accessMode selects the access of the flags of os.OpenFile.
	accessMode = os.O_RDONLY | os.O_WRONLY | os.O_RDWR
	// packBytes is the memory for the data of a buffer with gaps.
	packBytes = 1 << 20
	// rangeBytes is the memory for a range of the file from which short pieces are read.
	rangeBytes = 256 << 10
)

var errOverlap = errors.New("the layout has an element twice, so the view can only be read")

// access makes a blocking call, and returns the number of bytes.
func (v *fileView) access(a fileAccess, off int64, mem dtype.View) (int64, error) {
	h := v.f.c.begin(a.Name, CallFile, ProcNull, AnyTag, int(mem.Len()))
	n, err := v.transfer(a, off, mem)
	return n, h.finish(err)
}

func (v *fileView) transfer(a fileAccess, off int64, mem dtype.View) (int64, error) {
	if err := v.check(a, mem.Len()); err != nil {
		return 0, err
	}
	if a.All {
		before, done := v.f.calls.join()
		defer close(done)
		wait(before)
	}
	pos, err := v.locate(a, off, mem.Len())
	if err != nil {
		return 0, err
	}
	n, err := v.moveAt(a, pos, mem)
	if a.By == byPointer && n < mem.Len() {
		v.mu.Lock()
		v.pos = pos + n/v.unit*v.unit
		v.mu.Unlock()
	}
	return n, err
}

// start makes a nonblocking call. A goroutine does the I/O.
func (v *fileView) start(a fileAccess, off int64, mem dtype.View) Request {
	c := v.f.c
	h := c.beginStart(a.Name, CallFile, ProcNull, AnyTag, int(mem.Len()))
	err := v.check(a, mem.Len())
	if err != nil {
		return h.finishStart(c.refusedRequest(err))
	}
	var before, done chan struct{}
	if a.All {
		before, done = v.f.calls.join()
	}
	pos := int64(0)
	if a.By != byOrder { // which is found out together, after the calls before
		if pos, err = v.locate(a, off, mem.Len()); err != nil && !a.All {
			return h.finishStart(c.refusedRequest(err))
		}
	}
	result := &fileResult{err: err}
	r := c.afterwards(a.Name, func() {
		wait(before)
		if a.By == byOrder {
			pos, result.err = v.locate(a, off, mem.Len())
		}
		if result.err == nil {
			result.bytes, result.err = v.moveAt(a, pos, mem)
		}
		if done != nil {
			close(done)
		}
	})
	return h.finishStart(r.with(func(more *requestMore) { more.file = result }))
}

// fileResult is the result of a nonblocking call.
type fileResult struct {
	bytes int64
	err   error
}

// check refuses calls that the file does not allow.
func (v *fileView) check(a fileAccess, n int64) error {
	f := v.f
	mode := f.flag & accessMode
	switch {
	case f.closed.Load():
		return f.refuseClosed(a.Name)
	case a.Write && mode == os.O_RDONLY:
		return f.c.refuse(ErrAccess, a.Name, "rank %d, file %s: it is open for reading", f.c.rank, f.name)
	case !a.Write && mode == os.O_WRONLY:
		return f.c.refuse(ErrAccess, a.Name, "rank %d, file %s: it is open for writing", f.c.rank, f.name)
	case n > 0 && v.view.Empty():
		return f.c.refuse(ErrType, a.Name, "rank %d, file %s: the view has no elements", f.c.rank, f.name)
	}
	return nil
}

// locate returns the position of a call, in bytes of the view, and advances its pointer.
func (v *fileView) locate(a fileAccess, off, n int64) (int64, error) {
	units := (n + v.unit - 1) / v.unit
	switch a.By {
	case byPointer:
		v.mu.Lock()
		defer v.mu.Unlock()
		pos := v.pos
		v.pos += units * v.unit
		return pos, nil
	case byShared:
		at, err := v.f.shared.update(v.number, units, Sum)
		return at * v.unit, err
	case byOrder:
		return v.locateInOrder(a.Name, units)
	}
	if off < 0 || off > (math.MaxInt64-n)/v.unit {
		return 0, v.f.c.refuse(ErrArg, a.Name, "rank %d, file %s: the offset is %d", v.f.c.rank, v.f.name, off)
	}
	return off * v.unit, nil
}

// locateInOrder is locate for all ranks: one advances the shared pointer for them.
func (v *fileView) locateInOrder(op string, units int64) (int64, error) {
	c := v.f.c
	all := make([]int64, c.size)
	if err := allgather(c, op, []int64{units}, all); err != nil {
		return 0, err
	}
	before, total := int64(0), int64(0)
	for r, n := range all {
		if r < c.rank {
			before += n
		}
		total += n
	}
	base := []int64{0, 0}
	var err error
	if c.rank == 0 {
		base[0], err = v.f.shared.update(v.number, total, Sum)
		base[1] = errnoOf(err)
	}
	if e := bcastArgs(c, base, 0).callInside(op); e != nil {
		return 0, errors.Join(err, e)
	}
	if base[1] != 0 && err == nil {
		err = v.f.failure(op, -1, errnoFrom(base[1]))
	}
	return (base[0] + before) * v.unit, err
}

// moveAt reads or writes at a position.
func (v *fileView) moveAt(a fileAccess, pos int64, mem dtype.View) (int64, error) {
	if a.All && !v.f.atomic.Load() {
		return v.moveTogether(a, pos, mem)
	}
	return v.moveAlone(a, pos, mem)
}

// moveAlone reads or writes without other ranks.
func (v *fileView) moveAlone(a fileAccess, pos int64, mem dtype.View) (int64, error) {
	n := mem.Len()
	if n == 0 {
		return 0, nil
	}
	lo, hi := mpiio.Request{View: v.view, Pos: pos, N: n}.Bounds()
	if hi == math.MinInt64 || lo == math.MaxInt64 {
		return 0, v.f.c.refuse(ErrArg, a.Name, "rank %d, file %s: position %d is outside of any file", v.f.c.rank, v.f.name, pos)
	}
	if v.f.atomic.Load() {
		unlock, err := lockRange(v.f.os, lo, hi, a.Write)
		if err != nil {
			return 0, v.f.failure(a.Name, lo, err)
		}
		defer unlock()
	}
	if flat, ok := mem.Contiguous(); ok {
		return v.movePieces(a, pos, flat)
	}
	packed := make([]byte, min(n, packBytes))
	for done := int64(0); done < n; {
		part := packed[:min(n-done, packBytes)]
		if a.Write {
			mem.Pack(part, done)
		}
		k, err := v.movePieces(a, pos+done, part)
		if !a.Write {
			mem.Unpack(part[:k], done)
		}
		done += k
		if err != nil || k < int64(len(part)) {
			return done, err
		}
	}
	return n, nil
}

// movePieces reads or writes the pieces of the file that the bytes of buf are in. It returns the
// number of bytes, fewer at the end of the file.
func (v *fileView) movePieces(a fileAccess, pos int64, buf []byte) (n int64, err error) {
	if !a.Write && v.view.IsFine() {
		return v.readFine(a.Name, pos, buf)
	}
	if off, ok := v.view.IsPiece(pos, int64(len(buf))); ok {
		n, err = v.f.movePiece(a.Write, buf, off)
	} else {
		for off, k := range v.view.Extents(pos, int64(len(buf))) {
			var m int64
			m, err = v.f.movePiece(a.Write, buf[n:n+k], off)
			n += m
			if err != nil {
				break
			}
		}
	}
	if err == nil || err == io.EOF {
		return n, nil
	}
	return n, v.f.failure(a.Name, v.view.OffsetOf(pos+n), err)
}

// movePiece reads or writes contiguous bytes.
func (f *file) movePiece(write bool, buf []byte, off int64) (int64, error) {
	if write {
		n, err := f.writeAt(buf, off)
		return int64(n), err
	}
	n, err := f.readAt(buf, off)
	return int64(n), err
}

// readFine reads short pieces that are close to each other: ranges of the file with what is between
// them.
func (v *fileView) readFine(op string, pos int64, buf []byte) (n int64, err error) {
	window := make([]byte, rangeBytes)
	for n < int64(len(buf)) {
		lo := v.view.OffsetOf(pos + n)
		part := mpiio.Request{View: v.view, Pos: pos + n, N: int64(len(buf)) - n}.ClipTo(lo, lo+rangeBytes)
		_, hi := part.Bounds()
		m, err := v.f.readAt(window[:hi-lo], lo)
		if err != nil && err != io.EOF {
			return n, v.f.failure(op, lo+int64(m), err)
		}
		got := part.ClipTo(lo, lo+int64(m))
		v.view.MapOnto(window, lo).Pack(buf[n:n+got.N], got.Pos)
		n += got.N
		if got.N < part.N {
			return n, nil
		}
	}
	return n, nil
}
