//go:build linux

package iwarp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls on a socket. None of them blocks, so they are made past Go's scheduler, which
// would cost as much again as a short one; only what may copy for long goes through it,
// so that the collector does not wait for the copy.

// longCall is the number of bytes from which the scheduler is told.
const longCall = 128 << 10

// gather sends pieces of memory as one stretch of the stream, as far as the socket
// takes them. A peer that is gone is an error here, never a signal.
func gather(fd int, msg *unix.Msghdr, pieces []unix.Iovec) (int, error) {
	orderBeforeSending()
	total := uint64(0)
	for i := range pieces {
		total += uint64(pieces[i].Len)
	}
	call := unix.RawSyscall6
	if total > longCall {
		call = unix.Syscall6
	}
	const flags = unix.MSG_NOSIGNAL | unix.MSG_DONTWAIT
	var n uintptr
	var errno unix.Errno
	if len(pieces) == 1 { // it costs the kernel less
		n, _, errno = call(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(pieces[0].Base)), uintptr(total), flags, 0, 0)
	} else {
		msg.Iov = unsafe.SliceData(pieces)
		msg.SetIovlen(len(pieces))
		n, _, errno = call(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(msg)), flags, 0, 0, 0)
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// send is gather for the whole of one piece.
func send(fd int, b []byte) (int, error) {
	orderBeforeSending()
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
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

// bytesOf returns the memory of a piece.
func bytesOf(piece *unix.Iovec) []byte { return unsafe.Slice(piece.Base, piece.Len) }

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

// rebase lets a piece that is a part of from be the same part of to.
func rebase(piece *unix.Iovec, from, to []byte) {
	at := uintptr(unsafe.Pointer(piece.Base)) - uintptr(unsafe.Pointer(unsafe.SliceData(from)))
	if piece.Base != nil && at < uintptr(len(from)) {
		piece.Base = &to[at]
	}
}

// read takes what the socket has, as far as b has room.
func read(fd int, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	orderAfterReceiving()
	return int(n), nil
}

// scatter reads what the socket has into several pieces of memory.
func scatter(fd int, pieces []unix.Iovec) (int, error) {
	n, _, errno := unix.RawSyscall(unix.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(pieces))), uintptr(len(pieces)))
	if errno != 0 {
		return 0, errno
	}
	orderAfterReceiving()
	return int(n), nil
}
