package mpi

// Access without the cache of the system (O_DIRECT in open(2)), for the hints DirectRead and DirectWrite.
// Offset, length and address have to be multiples of a block. So the middle of a long access goes to the
// device, by way of aligned memory if its own is not, and its ends, which share blocks with data of
// others, to the cache as ever.

import (
	"io"
	"os"
	"sync/atomic"
)

const (
	directBlock = 4096 // the blocks of devices are not longer
	// leastDirect is the length from which on the middle goes to the device.
	leastDirect = 64 << 10
	// directBytes is the memory through which data goes whose address is not aligned.
	directBytes = 1 << 20
)

// directFile is a file without the cache of the system.
type directFile struct {
	os          *os.File    // nil: not opened
	read, write atomic.Bool // whether to use it; nonblocking calls may be under way when they change
}

// setHints changes the hints. Those that the file system does not support are not set.
func (f *file) setHints(h FileHints) {
	d := &f.direct
	if (h.DirectRead || h.DirectWrite) && d.os == nil {
		d.os = openDirect(f.os, f.flag&accessMode)
	}
	h.DirectRead, h.DirectWrite = h.DirectRead && d.os != nil, h.DirectWrite && d.os != nil
	d.read.Store(h.DirectRead)
	d.write.Store(h.DirectWrite)
	f.hints = h
}

func (f *file) closeOS() error {
	if f.direct.os != nil {
		_ = f.direct.os.Close() // has no data of its own
	}
	return f.os.Close()
}

func (f *file) writeAt(b []byte, off int64) (int, error) {
	if f.direct.write.Load() && len(b) >= leastDirect {
		return f.accessDirect((*os.File).WriteAt, b, off, true)
	}
	return f.os.WriteAt(b, off)
}

func (f *file) readAt(b []byte, off int64) (int, error) {
	if f.direct.read.Load() && len(b) >= leastDirect {
		return f.accessDirect((*os.File).ReadAt, b, off, false)
	}
	return f.os.ReadAt(b, off)
}

// accessDirect reads or writes the whole blocks of a range without the cache.
func (f *file) accessDirect(access func(*os.File, []byte, int64) (int, error), b []byte, off int64, write bool) (n int, err error) {
	head := int(-off & (directBlock - 1))
	if n, err = access(f.os, b[:head], off); n < head || err != nil && err != io.EOF {
		return n, err
	}
	last := len(b) - (len(b)-head)%directBlock
	var aligned []byte
	if misalignment(b[head:], directBlock) != 0 {
		aligned = alignedBytes(min(int64(last-head), directBytes))
	}
	for n < last {
		part, through := b[n:last], b[n:last]
		if aligned != nil {
			part = part[:min(len(part), len(aligned))]
			through = aligned[:len(part)]
		}
		if write && aligned != nil {
			copy(through, part)
		}
		m, err := access(f.direct.os, through, off+int64(n))
		if !write && aligned != nil {
			copy(part, through[:m])
		}
		if n += m; err != nil { // as at the end of the file, whose last block is not whole
			break
		}
	}
	m, err := access(f.os, b[n:], off+int64(n))
	return n + m, err
}

// alignedBytes returns memory that begins at a multiple of directBlock.
func alignedBytes(n int64) []byte {
	b := make([]byte, n+directBlock)
	at := int64(0)
	if past := misalignment(b, directBlock); past > 0 {
		at = int64(directBlock - past)
	}
	return b[at : at+n : at+n]
}
