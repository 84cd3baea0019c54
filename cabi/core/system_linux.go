package core

import "syscall"

// thread returns the number of the calling thread.
func thread() int { return syscall.Gettid() }

// mapMemory returns memory of the process that is not memory of Go.
func mapMemory(size int) ([]byte, error) {
	return syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func unmapMemory(mem []byte) error { return syscall.Munmap(mem) }
