//go:build linux && !muster_portable

package iwarp

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/internal/race"
)

// System calls on a socket. None of them blocks, so they bypass Go's scheduler, which
// would double the cost of a short one; only calls that may copy for long go through it,
// so that the garbage collector does not wait for the copy.

type (
	piece   = unix.Iovec
	message = unix.Msghdr
)

// longCall is the number of bytes from which a call goes through the scheduler.
const longCall = 128 << 10

// gather sends pieces of memory as one part of the stream, as far as the socket accepts
// them. A peer that is gone causes an error, never a signal.
func gather(fd conn, msg *message, pieces []piece) (int, error) {
	race.OrderBeforeSending()
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
	if len(pieces) == 1 { // costs the kernel less
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

// send is gather for one piece.
func send(fd conn, b []byte) (int, error) {
	race.OrderBeforeSending()
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// pieceOf returns the Iovec of a slice.
func pieceOf(b []byte) piece {
	p := piece{Base: unsafe.SliceData(b)}
	p.SetLen(len(b))
	return p
}

// lengthOf returns the length of a piece.
func lengthOf(p *piece) int { return int(p.Len) }

// bytesOf returns the memory of a piece.
func bytesOf(p *piece) []byte { return unsafe.Slice(p.Base, p.Len) }

// skip removes n bytes from the front of a piece. An empty piece keeps nothing alive, and
// does not point past its memory, where the garbage collector would find another object.
func skip(p *piece, n int) {
	if n == int(p.Len) {
		*p = piece{}
		return
	}
	p.Base = (*byte)(unsafe.Add(unsafe.Pointer(p.Base), n))
	p.SetLen(int(p.Len) - n)
}

// rebase turns a piece that is a part of from into the same part of to.
func rebase(p *piece, from, to []byte) {
	at := uintptr(unsafe.Pointer(p.Base)) - uintptr(unsafe.Pointer(unsafe.SliceData(from)))
	if p.Base != nil && at < uintptr(len(from)) {
		p.Base = &to[at]
	}
}

// read reads from the socket, up to the length of b.
func read(fd conn, b []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	race.OrderAfterReceiving()
	return int(n), nil
}

// scatter reads from the socket into several pieces of memory.
func scatter(fd conn, pieces []piece) (int, error) {
	n, _, errno := unix.RawSyscall(unix.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(pieces))), uintptr(len(pieces)))
	if errno != 0 {
		return 0, errno
	}
	race.OrderAfterReceiving()
	return int(n), nil
}
