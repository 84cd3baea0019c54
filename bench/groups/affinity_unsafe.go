//go:build linux

package groups

import (
	"fmt"
	"syscall"
	"unsafe"
)

// cpuMask has the size of the kernel's largest CPU set.
type cpuMask [128]uint64

// twoCPUs returns the first two CPUs that this process may run on.
func twoCPUs() ([]int, error) {
	var mask cpuMask
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return nil, fmt.Errorf("reading the allowed CPUs: %w", errno)
	}
	var cpus []int
	for i := range len(mask) * 64 {
		if mask[i/64]>>(i%64)&1 != 0 {
			cpus = append(cpus, i)
		}
		if len(cpus) == 2 {
			return cpus, nil
		}
	}
	return nil, fmt.Errorf("this process may use %d CPU, two are needed", len(cpus))
}

// bindThread binds the calling thread to one CPU.
func bindThread(cpu int) error {
	var mask cpuMask
	mask[cpu/64] = 1 << (cpu % 64)
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return errno
	}
	return nil
}
