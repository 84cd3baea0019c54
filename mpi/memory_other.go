//go:build !linux

package mpi

// Other systems have no devices that benefit from mapped memory: it comes from the heap.

// pageRoom is at least the page size of all these systems.
const pageRoom = 1 << 16

func mapMemory(size int) (mapping, error) {
	whole := make([]byte, size+pageRoom) // large objects are page-aligned
	return mapping{whole, whole[:size:size]}, nil
}

func unmapMemory([]byte) error { return nil }
