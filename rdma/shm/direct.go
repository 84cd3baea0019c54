package shm

import (
	"slices"

	"github.com/muster-mpi/muster/internal/direct"
	"github.com/muster-mpi/muster/rdma"
)

// The C front sends and receives short messages on the rings itself (package direct). It
// does what PostSend and Poll do for one message, with the same words.

// DirectDevice implements rdma.Direct. It returns false for ranks of one process, whose
// segments are not mapped.
func (d *Device) DirectDevice(t *direct.Engine, pins *direct.Pins) bool {
	if d.cfg.Host != nil || !d.recv.lend {
		return false
	}
	pins.Pin(d)
	t.Sent, t.Came = &d.traffic.sent, &d.traffic.received
	t.Closed, t.Unfenced = &d.closed, &d.fences.unneeded
	return true
}

// DirectPeer implements rdma.Direct.
func (d *Device) DirectPeer(id rdma.PeerID, t *direct.Peer, pins *direct.Pins) bool {
	p := d.peer(id)
	if p == nil || p.mine || p.seg.heap {
		return false
	}
	pins.Pin(p)
	t.Gone, t.Fenced, t.Sleeper = &p.gone, &p.fenced, &p.seg.head.sleeper
	if w := p.ring; w != nil {
		pins.Pin(w)
		t.Out.Ring = directRing(w.memory, w.shift, &w.pos, &w.at, &w.streak)
		t.Out.CellsSeen, t.Out.BytesSeen, t.Out.Came = &w.cellsSeen, &w.bytesSeen, &w.came
	}
	if i := slices.IndexFunc(d.inbox.rings, func(r *ringReader) bool { return r.source == int(id) }); i >= 0 {
		r := d.inbox.rings[i]
		pins.Pin(r)
		t.In.Ring = directRing(r.memory, r.shift, &r.pos, &r.at, &r.streak)
		t.In.Cell, t.In.Lap = direct.Slot(&r.cell), &r.lap
		t.In.PublishCells, t.In.PublishBytes = &r.publishCells, &r.publishBytes
		t.In.Sent, t.In.Pause, t.In.Asked, t.In.Late = &r.sent, &r.pause, &r.asked, &r.late
	}
	return t.Out.Pos != nil || t.In.Pos != nil
}

func directRing(m *ringMemory, shift uint8, pos, at *uint64, streak *int) direct.Ring {
	return direct.Ring{
		Cells: direct.Elements(m.cells), CellCount: uint64(len(m.cells)),
		Bytes: direct.Elements(m.bytes), ByteCount: uint64(len(m.bytes)),
		Head: direct.Address(m.head), Shift: uint64(shift), Pos: pos, At: at, Streak: streak,
	}
}

// DirectWake implements rdma.Direct.
func (d *Device) DirectWake(id rdma.PeerID) {
	if p := d.peer(id); p != nil {
		d.wakePeer(p, false)
	}
	for _, r := range d.inbox.rings {
		if r.source == int(id) {
			r.publishPositions()
		}
	}
}

// DirectConstants returns the numbers of the rings that the C front uses.
func DirectConstants() map[string]int64 {
	return map[string]int64{
		"INLINE": ringInline, "KIND_DATA": int64(kindData), "MAX_SEND": maxSend, "DEMOTE_UP_TO": demoteUpTo,
		"REACH_AHEAD": reachAhead, "REACH_AFTER": reachAfter, "LOOK_CELLS": lookCells, "ANSWER_DELAY": answerDelay,
		"STREAM_AFTER": streamAfter, "STREAM_BATCH": streamBatch, "STREAM_PAUSE": streamPause,
	}
}
