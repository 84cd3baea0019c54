package core

import (
	"io"
	"syscall"
	"time"
)

// thread returns the number of the calling thread.
func thread() int { return syscall.Gettid() }

// mapMemory returns memory of the process that is not memory of Go.
func mapMemory(size int) ([]byte, error) {
	return syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

// mapMemoryAt maps memory of the process at an address where nothing is mapped.
func mapMemoryAt(addr uintptr, size int) error {
	const noReplace = 0x100000 // MAP_FIXED_NOREPLACE
	got, _, errno := syscall.Syscall6(syscall.SYS_MMAP, addr, uintptr(size), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE|noReplace, ^uintptr(0), 0)
	if errno != 0 {
		return errno
	}
	if got != addr { // a kernel that does not know the flag
		_, _, _ = syscall.Syscall(syscall.SYS_MUNMAP, got, uintptr(size), 0)
		return syscall.EEXIST
	}
	return nil
}

func unmapMemory(mem []byte) error { return syscall.Munmap(mem) }

// readSocket reads all of b from a socket of the program, and writeSocket writes it.
func readSocket(fd int, b []byte) error  { return transferAll(syscall.Read, fd, b) }
func writeSocket(fd int, b []byte) error { return transferAll(syscall.Write, fd, b) }

func transferAll(transfer func(fd int, b []byte) (int, error), fd int, b []byte) error {
	for len(b) > 0 {
		n, err := transfer(fd, b)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN: // the program has made the socket nonblocking
			time.Sleep(time.Millisecond)
		case err != nil:
			return err
		case n == 0:
			return io.ErrUnexpectedEOF
		default:
			b = b[n:]
		}
	}
	return nil
}
