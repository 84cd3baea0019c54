//go:build linux

package shm

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// residentBytes returns how many bytes of a mapping are resident, by mincore(2). mem is
// page-aligned.
func residentBytes(mem []byte) uint64 {
	if len(mem) == 0 {
		return 0
	}
	page := unix.Getpagesize()
	in := make([]byte, (len(mem)+page-1)/page)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem)), uintptr(unsafe.Pointer(&in[0])))
	if errno != 0 {
		return uint64(len(mem)) // unknown: the upper bound
	}
	n := 0
	for _, b := range in {
		n += int(b & 1)
	}
	return uint64(n * page)
}
