//go:build ofi && cgo && linux

package ofi

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma/ofi/internal/leap"
)

// cStack is memory for C functions that leap.Call runs. The calls of a device are
// serialized, so one stack suffices. The zero cStack is none.
type cStack struct{ mem []byte }

// stackBytes is many times what a provider over sockets needs. Untouched pages cost
// nothing; the lowest is protected, so that an overflow ends the program.
const stackBytes = 1 << 20

// newStack returns no stack where leap or memory is not available: then cgo is used.
func newStack() cStack {
	if !leap.Possible {
		return cStack{}
	}
	mem, err := unix.Mmap(-1, 0, stackBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return cStack{}
	}
	if err := unix.Mprotect(mem[:unix.Getpagesize()], unix.PROT_NONE); err != nil {
		_ = unix.Munmap(mem)
		return cStack{}
	}
	return cStack{mem}
}

// stackMargin stays zero above the first frame: a profiler that interrupts the switch
// between two stacks takes it for the end of the stack.
const stackMargin = 256

// top returns the upper end, 0 if there is no stack.
func (s cStack) top() uintptr {
	if s.mem == nil {
		return 0
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(s.mem))) + uintptr(len(s.mem)) - stackMargin
}

func (s cStack) free() {
	if s.mem != nil {
		_ = unix.Munmap(s.mem)
	}
}

// returnsAtOnce reports whether posting and polling never block: with providers over
// sockets, all of whose system calls are non-blocking. Others may call a connection
// manager or a driver now and then, and the scheduler should know.
func returnsAtOnce(provider string) bool {
	return provider == "net" || provider == "tcp" || strings.HasPrefix(provider, "tcp;") || strings.HasPrefix(provider, "net;")
}
