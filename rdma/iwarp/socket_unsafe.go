//go:build linux

package iwarp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// gather sends pieces of memory as one stretch of the stream, as far as the socket
// takes them. A peer that is gone is an error here, never a signal.
func gather(fd int, msg *unix.Msghdr, pieces []unix.Iovec) (int, error) {
	orderBeforeSending()
	msg.Iov = unsafe.SliceData(pieces)
	msg.SetIovlen(len(pieces))
	n, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(msg)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// pieceOf is memory as gather wants it.
func pieceOf(b []byte) unix.Iovec {
	piece := unix.Iovec{Base: unsafe.SliceData(b)}
	piece.SetLen(len(b))
	return piece
}

// skip takes n bytes off the front of a piece. One that is used up keeps nothing alive,
// and does not point behind its memory, where the collector would find something else.
func skip(piece *unix.Iovec, n int) {
	if n == int(piece.Len) {
		*piece = unix.Iovec{}
		return
	}
	piece.Base = (*byte)(unsafe.Add(unsafe.Pointer(piece.Base), n))
	piece.SetLen(int(piece.Len) - n)
}

// read takes what the socket has, as far as b has room.
func read(fd int, b []byte) (int, error) {
	n, _, errno := unix.Syscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	orderAfterReceiving()
	return int(n), nil
}

// scatter reads what the socket has into several pieces of memory.
func scatter(fd int, pieces []unix.Iovec) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(pieces))), uintptr(len(pieces)))
	if errno != 0 {
		return 0, errno
	}
	orderAfterReceiving()
	return int(n), nil
}
