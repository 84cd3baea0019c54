//go:build ofi && cgo && linux

package ofi

// The C side's assumptions about Go, for the tests that compare them: cgo cannot be used
// in a test file.

// #include "shim.h"
import "C"

import "unsafe"

// requestLayout holds the offsets at which C expects the fields of rdma.SendWR.
var requestLayout = func() (l struct {
	id, body, remote, rkey, peer, lkey, op, flags, headLen, head, size uintptr
}) {
	var w C.mo_wr
	l.id, l.body, l.remote, l.rkey = unsafe.Offsetof(w.id), unsafe.Offsetof(w.body), unsafe.Offsetof(w.remote), unsafe.Offsetof(w.rkey)
	l.peer, l.lkey, l.op, l.flags = unsafe.Offsetof(w.peer), unsafe.Offsetof(w.lkey), unsafe.Offsetof(w.op), unsafe.Offsetof(w.flags)
	l.headLen, l.head, l.size = unsafe.Offsetof(w.head_len), unsafe.Offsetof(w.head), unsafe.Sizeof(w)
	return l
}()

// constants holds the C values of constants of package rdma.
var constants = struct {
	rc, rd, ud, send, write, read, recv, lowWater, inline, remoteRead, remoteWrite int
	ok, access, tooLong, gone, flushed, fault, headMax, header, name               int
}{
	C.MO_RC, C.MO_RD, C.MO_UD, C.MO_SEND, C.MO_WRITE, C.MO_READ, C.MO_RECV, C.MO_LOW_WATER, C.MO_INLINE, C.MO_REMOTE_READ, C.MO_REMOTE_WRITE,
	C.MO_STATUS_OK, C.MO_STATUS_ACCESS, C.MO_STATUS_TOO_LONG, C.MO_STATUS_GONE, C.MO_STATUS_FLUSHED, C.MO_STATUS_FAULT,
	len(C.mo_wr{}.head), C.MO_HEADER_BYTES, C.MO_NAME_MAX,
}
