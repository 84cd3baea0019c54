//go:build ofi && cgo && linux

package ofi

import (
	"testing"
	"unsafe"

	"github.com/muster-mpi/muster/rdma"
)

// C reads work requests in the layout of Go.
func TestWorkRequestLayout(t *testing.T) {
	var wr rdma.SendWR
	for _, v := range []struct {
		field   string
		inGo, c uintptr
	}{
		{"ID", unsafe.Offsetof(wr.ID), requestLayout.id},
		{"Body", unsafe.Offsetof(wr.Body), requestLayout.body},
		{"Remote", unsafe.Offsetof(wr.Remote), requestLayout.remote},
		{"RKey", unsafe.Offsetof(wr.RKey), requestLayout.rkey},
		{"Peer", unsafe.Offsetof(wr.Peer), requestLayout.peer},
		{"LKey", unsafe.Offsetof(wr.LKey), requestLayout.lkey},
		{"Op", unsafe.Offsetof(wr.Op), requestLayout.op},
		{"Flags", unsafe.Offsetof(wr.Flags), requestLayout.flags},
		{"HeadLen", unsafe.Offsetof(wr.HeadLen), requestLayout.headLen},
		{"Head", unsafe.Offsetof(wr.Head), requestLayout.head},
		{"size of all", unsafe.Sizeof(wr), requestLayout.size},
	} {
		if v.inGo != v.c {
			t.Errorf("%s is at %d in Go and at %d in C", v.field, v.inGo, v.c)
		}
	}
	// Mem is an address and a length.
	b := make([]byte, 77)
	m := rdma.MemOf(b)
	words := (*[2]uintptr)(unsafe.Pointer(&m))
	if unsafe.Sizeof(m) != 16 || words[0] != uintptr(unsafe.Pointer(&b[0])) || words[1] != 77 {
		t.Errorf("rdma.Mem is no longer an address and a length: %x", words)
	}
}

func TestConstantsMatchC(t *testing.T) {
	for _, v := range []struct {
		name    string
		inGo, c int
	}{
		{"RC", int(rdma.RC), constants.rc}, {"RD", int(rdma.RD), constants.rd}, {"UD", int(rdma.UD), constants.ud},
		{"OpSend", int(rdma.OpSend), constants.send}, {"OpWrite", int(rdma.OpWrite), constants.write},
		{"OpRead", int(rdma.OpRead), constants.read}, {"OpRecv", int(rdma.OpRecv), constants.recv},
		{"OpLowWater", int(rdma.OpLowWater), constants.lowWater}, {"Inline", int(rdma.Inline), constants.inline},
		{"RemoteRead", int(rdma.RemoteRead), constants.remoteRead}, {"RemoteWrite", int(rdma.RemoteWrite), constants.remoteWrite},
		{"StatusOK", int(rdma.StatusOK), constants.ok}, {"StatusRemoteAccess", int(rdma.StatusRemoteAccess), constants.access},
		{"StatusTooLong", int(rdma.StatusTooLong), constants.tooLong}, {"StatusPeerGone", int(rdma.StatusPeerGone), constants.gone},
		{"StatusFlushed", int(rdma.StatusFlushed), constants.flushed}, {"StatusFault", int(rdma.StatusFault), constants.fault},
		{"HeadMax", rdma.HeadMax, constants.headMax}, {"length of the header", headerBytes, constants.header},
		{"longest name", maxName, constants.name},
	} {
		if v.inGo != v.c {
			t.Errorf("%s is %d in Go and %d in C", v.name, v.inGo, v.c)
		}
	}
}
