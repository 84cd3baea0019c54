package shm

import (
	"slices"

	"github.com/muster-mpi/muster/internal/direct"
	"github.com/muster-mpi/muster/rdma"
)

// The C front sends and receives short messages on the rings itself (package direct). It
// does what PostSend and Poll do for one message, with the same words.

// DirectDevice stores pointers to the device's words. It returns false for ranks of one
// process, whose segments are not mapped.
func (d *Device) DirectDevice(t *direct.Engine, pins *direct.Pins) bool {
	if d.cfg.Host != nil || !d.recv.lend {
		return false
	}
	pins.Pin(d)
	t.Sent, t.Came = &d.traffic.sent, &d.traffic.received
	t.Closed, t.Unfenced = &d.closed, &d.fences.unneeded
	return true
}

// DirectPeer stores pointers to the words of the rings to and from a peer, which stay valid
// as long as the device.
func (d *Device) DirectPeer(id rdma.PeerID, t *direct.Peer, pins *direct.Pins) bool {
	p := d.peer(id)
	if p == nil || p.mine || p.seg.heap {
		return false
	}
	pins.Pin(p)
	t.Gone, t.Fenced, t.Sleeper = &p.gone, &p.fenced, &p.seg.head.sleeper
	if w := p.ring; w != nil {
		pins.Pin(w)
		t.OutCells, t.OutCellCount = direct.Elements(w.cells), uint64(len(w.cells))
		t.OutBytes, t.OutByteCount = direct.Elements(w.bytes), uint64(len(w.bytes))
		t.OutAt, t.OutCellsSeen, t.OutBytesSeen = &w.at, &w.cellsSeen, &w.bytesSeen
		t.OutHead, t.OutShift = direct.Address(w.head), uint64(w.shift)
		t.OutCame, t.OutStreak = &w.came, &w.streak
		t.OutPos = &w.pos
	}
	if i := slices.IndexFunc(d.inbox.rings, func(r *ringReader) bool { return r.source == int(id) }); i >= 0 {
		r := d.inbox.rings[i]
		pins.Pin(r)
		t.InCells, t.InCellCount = direct.Elements(r.cells), uint64(len(r.cells))
		t.InBytes, t.InByteCount = direct.Elements(r.bytes), uint64(len(r.bytes))
		t.InCell, t.InLap, t.InAt = direct.Slot(&r.cell), &r.lap, &r.at
		t.InPublishCells, t.InPublishBytes = &r.publishCells, &r.publishBytes
		t.InHead, t.InShift = direct.Address(r.head), uint64(r.shift)
		t.InSent, t.InStreak, t.InPause = &r.sent, &r.streak, &r.pause
		t.InAsked, t.InLate = &r.asked, &r.late
		t.InPos = &r.pos
	}
	return t.OutPos != nil || t.InPos != nil
}

// DirectWake does what follows a message that the front has published while the peer slept or
// had closed, and announces the room in its ring that the front has released.
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
