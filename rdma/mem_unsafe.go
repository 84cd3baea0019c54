package rdma

import "unsafe"

// Mem is a piece of memory in two words. It keeps Go memory alive and may just
// as well point at mapped or foreign memory.
type Mem struct {
	p *byte
	n int
}

// MemOf makes a Mem of a slice.
func MemOf(b []byte) Mem { return Mem{unsafe.SliceData(b), len(b)} }

// Bytes is the memory as a slice.
func (m Mem) Bytes() []byte { return unsafe.Slice(m.p, m.n) }

// Len is the number of bytes.
func (m Mem) Len() int { return m.n }

// Addr is the address, as a peer gives it in SendWR.Remote.
func (m Mem) Addr() uint64 { return uint64(uintptr(unsafe.Pointer(m.p))) }

// Ptr is the address as a pointer, for devices that hand it to the kernel.
func (m Mem) Ptr() unsafe.Pointer { return unsafe.Pointer(m.p) }

// Slice is the part [lo, hi).
func (m Mem) Slice(lo, hi int) Mem { return MemOf(m.Bytes()[lo:hi]) }
