package shm

import (
	"slices"

	"github.com/muster-mpi/muster/internal/direct"
	"github.com/muster-mpi/muster/rdma"
)

// The C front sends and receives short messages on the rings itself (package direct). It
// does what PostSend and Poll do for one message, with the same words.

// DirectDevice stores the addresses of the device's words. It returns false for ranks of one
// process, whose segments are not mapped.
func (d *Device) DirectDevice(t *direct.Engine) bool {
	if d.cfg.Host != nil || !d.recv.lend {
		return false
	}
	t.Sent, t.Came = direct.Address(&d.sent), direct.Address(&d.came)
	t.Closed, t.Unfenced = direct.Address(&d.closed), direct.Address(&d.unfenced)
	return true
}

// DirectPeer stores the addresses of the words of the rings to and from a peer, which stay
// valid as long as the device.
func (d *Device) DirectPeer(id rdma.PeerID, t *direct.Peer) bool {
	p := d.peer(id)
	if p == nil || p.mine || p.seg.heap {
		return false
	}
	t.Gone, t.Fenced, t.Sleeper = direct.Address(&p.gone), direct.Address(&p.fenced), direct.Address(&p.seg.head.sleeper)
	if w := p.ring; w != nil {
		t.OutCells, t.OutCellCount = direct.Elements(w.cells), uintptr(len(w.cells))
		t.OutBytes, t.OutByteCount = direct.Elements(w.bytes), uintptr(len(w.bytes))
		t.OutAt, t.OutCellsSeen, t.OutBytesSeen = direct.Address(&w.at), direct.Address(&w.cellsSeen), direct.Address(&w.bytesSeen)
		t.OutHead, t.OutShift = direct.Address(w.head), uintptr(w.shift)
		t.OutCame, t.OutStreak = direct.Address(&w.came), direct.Address(&w.streak)
		t.OutPos = direct.Address(&w.pos)
		if !slices.Contains(d.shared, p) {
			d.shared = append(d.shared, p)
		}
	}
	if i := slices.IndexFunc(d.rings, func(r *ringReader) bool { return r.source == int(id) }); i >= 0 {
		r := d.rings[i]
		t.InCells, t.InCellCount = direct.Elements(r.cells), uintptr(len(r.cells))
		t.InBytes, t.InByteCount = direct.Elements(r.bytes), uintptr(len(r.bytes))
		t.InCell, t.InLap, t.InAt = direct.Address(&r.cell), direct.Address(&r.lap), direct.Address(&r.at)
		t.InPublishCells, t.InPublishBytes = direct.Address(&r.publishCells), direct.Address(&r.publishBytes)
		t.InHead, t.InShift = direct.Address(r.head), uintptr(r.shift)
		t.InSent, t.InStreak, t.InPause = direct.Address(&r.sent), direct.Address(&r.streak), direct.Address(&r.pause)
		t.InAsked, t.InLate = direct.Address(&r.asked), direct.Address(&r.late)
		t.InPos = direct.Address(&r.pos)
		if !slices.Contains(d.sharedIn, r) {
			d.sharedIn = append(d.sharedIn, r)
		}
	}
	return t.OutPos|t.InPos != 0
}

// DirectWake does what follows a message that the front has published while the peer slept or
// had closed, and announces the room in its ring that the front has released.
func (d *Device) DirectWake(id rdma.PeerID) {
	if p := d.peer(id); p != nil {
		d.wakePeer(p, false)
	}
	for _, r := range d.rings {
		if r.source == int(id) {
			r.publishPositions()
		}
	}
}
