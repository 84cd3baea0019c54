package engine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ringMemory returns memory outside the Go heap: adapters write into it unseen by the
// garbage collector and the race detector.
func ringMemory(n int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes for a ring: %w", n, err)
	}
	return mem, nil
}

func freeRing(mem []byte) {
	_ = unix.Munmap(mem) // it fails only for memory that is not mapped
}
