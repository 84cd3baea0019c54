package rdma

import "unsafe"

// Mem is a memory range in two machine words. It keeps Go memory alive and may also
// point to mapped or C memory.
type Mem struct {
	p *byte
	n int
}

// MemOf returns the Mem of a slice.
func MemOf(b []byte) Mem { return Mem{unsafe.SliceData(b), len(b)} }

// Bytes returns the memory as a slice.
func (m Mem) Bytes() []byte { return unsafe.Slice(m.p, m.n) }

// Len returns the number of bytes.
func (m Mem) Len() int { return m.n }

// Addr returns the address, as a peer passes it in SendWR.Remote.
func (m Mem) Addr() uint64 { return uint64(uintptr(unsafe.Pointer(m.p))) }

// Ptr returns the address as a pointer, for devices that pass it to the kernel.
func (m Mem) Ptr() unsafe.Pointer { return unsafe.Pointer(m.p) }

// Slice returns the range [lo, hi).
func (m Mem) Slice(lo, hi int) Mem { return MemOf(m.Bytes()[lo:hi]) }
