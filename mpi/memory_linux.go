package mpi

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// hugePage is the page size for large memory, if the system has such pages: the
// adapter and the processor then need fewer translations.
const hugePage = 2 << 20

// mapMemory maps zeroed memory. Memory that can hold a huge page starts at one; the
// rest of the mapping is never touched, so it uses no memory.
func mapMemory(size int) (mapping, error) {
	room := 0
	if size >= hugePage {
		room = hugePage
	}
	whole, err := unix.Mmap(-1, 0, size+room, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return mapping{}, fmt.Errorf("map %d bytes: %w", size, err)
	}
	if room == 0 {
		return mapping{whole, whole}, nil
	}
	skip := int(-rdma.MemOf(whole).Addr() % hugePage)
	used := whole[skip : skip+size : skip+size]
	_ = unix.Madvise(used, unix.MADV_HUGEPAGE) // only a hint
	return mapping{whole, used}, nil
}

func unmapMemory(whole []byte) error { return unix.Munmap(whole) }
