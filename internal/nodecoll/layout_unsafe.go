package nodecoll

import (
	"sync/atomic"
	"unsafe"

	"github.com/muster-mpi/muster/internal/shmem"
)

// The layout of a segment: a header, then the sections. Data that one rank writes and
// others poll has a cache line of its own.

// word is 64 bits that ranks share.
type word = shmem.Word

const (
	lineBytes = shmem.LineBytes
	// depth is the number of rounds that a rank may be ahead of the slowest reader.
	depth = 16
	// cellBytes is the space in a line beside its word.
	cellBytes = lineBytes - 8
	slotBytes = 4 << 10
	// mostSlots is the number of slots that one round may use (Team.next).
	mostSlots = depth / 2

	segmentMagic = 0x334c4c4f_4354534d // "MSTCOLL3": the digit changes with anything in this file
	headerBytes  = int(unsafe.Sizeof(header{}))
	sectionBytes = int(unsafe.Sizeof(section{}))
)

type header struct {
	magic word
	size  word
	_     [lineBytes - 16]byte

	// sleepers is read after every publication, and written when a rank falls asleep or
	// wakes up.
	sleepers atomic.Int32
	_        [lineBytes - 4]byte

	// fault reports that ranks are not in the same call (fault.go).
	fault fault
}

type cell struct {
	word word // round in the lower half, signature in the upper
	data [cellBytes]byte
}

// section is written by one rank. Its size is deliberately no multiple of a page: the
// cells of different ranks should not compete for the same lines of a cache.
type section struct {
	cells [depth]cell
	done  word
	_     [lineBytes - 8]byte
	// asleep is 1 + the rank whose store the owner sleeps for, else 0.
	asleep atomic.Uint32
	_      [3*lineBytes - 4]byte
	// calls are the rank's calls. Others read them only after a long wait.
	calls record
	_     [lineBytes - 8]byte
	slots [depth * slotBytes]byte
}

// segment is a rank's view of a segment. In one process all ranks share it.
type segment struct {
	head     *header
	sections []section
	mem      []byte
}

func segmentBytes(size int) int { return headerBytes + size*sectionBytes }

// layOut lays the parts out over mem, which is long enough and line-aligned.
func layOut(mem []byte, size int) segment {
	return segment{
		head:     (*header)(unsafe.Pointer(&mem[0])),
		sections: unsafe.Slice((*section)(unsafe.Pointer(&mem[headerBytes])), size),
		mem:      mem,
	}
}

// elements views bytes of a cell or slot, which are aligned for any T.
func elements[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/sizeOf[T]())
}

// bytesOf returns the memory of a slice.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*sizeOf[T]())
}

func sizeOf[T any]() int { return int(unsafe.Sizeof(*new(T))) }

// same reports whether two slices begin at the same address.
func same[T any](a, b []T) bool { return unsafe.SliceData(a) == unsafe.SliceData(b) }
