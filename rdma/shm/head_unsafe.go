package shm

import (
	"unsafe"

	"github.com/muster-mpi/muster/rdma"
)

// copyHead copies as much of a Head as a cell holds, word by word. The compiler's own copy
// would load 16 bytes at a time, and a load that spans two recent stores has to wait until
// they have left the store buffer: a Head is written in words of 8.
func copyHead(to *[ringInline]byte, from *[rdma.HeadMax]byte) {
	t, f := (*[ringInline / 8]uint64)(unsafe.Pointer(to)), (*[ringInline / 8]uint64)(unsafe.Pointer(from))
	t[0], t[1], t[2], t[3] = f[0], f[1], f[2], f[3]
	t[4], t[5], t[6] = f[4], f[5], f[6]
}
