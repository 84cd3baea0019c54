//go:build linux

package rdmatest

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// connectRaw is connect(2) with an address that package unix has no type for.
func connectRaw(fd int, to *unix.RawSockaddr) error {
	if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(to)), unsafe.Sizeof(*to)); errno != 0 {
		return errno
	}
	return nil
}
