//go:build !linux

package shm

// residentBytes is not used here: heap mode maps nothing.
func residentBytes(mem []byte) uint64 { return uint64(len(mem)) }
