package engine

// Rings of busy peers (P3 §2.2; p2p/eager_ring.go). A peer that has sent enough
// messages gets a ring and keeps it; Config.Rings bounds their number. Polling a lane
// includes its rings.

import (
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
)

// ringAfter is the number of messages after which a peer gets a ring.
const ringAfter = 64

// considerRing gives a peer a ring if it has sent enough messages.
func (e *Held) considerRing(d *lane, l *p2p.Link) {
	if l.Stats.Received < ringAfter || len(d.rings) >= e.cfg.Rings || l.Rank == e.rank || l.Err != nil {
		return
	}
	if mem, _ := l.RingMemory(); mem != nil || !d.attr.Ops.Has(rdma.OpWrite) {
		return
	}
	slot := min(p2p.RingSlot, d.attr.MaxInline)
	mem, err := ringMemory(p2p.RingSlots * slot)
	if err != nil {
		e.cfg.Rings = 0 // out of memory: use the receive queue
		return
	}
	mr, err := d.dev.Register(mem, rdma.RemoteWrite)
	if err != nil {
		e.cfg.Rings = 0
		freeRing(mem)
		return
	}
	d.rings = append(d.rings, l)
	e.m.OfferRing(l, mem, mr, slot)
}

// pollRings takes the packets from the rings of a lane.
func (e *Held) pollRings(d *lane) (n int) {
	for _, l := range d.rings {
		n += e.m.PollRing(l)
	}
	if n > 0 && race.Enabled {
		d.orderAfterRing()
	}
	return n
}

// orderAfterRing orders the following code after what the device has written so far. A
// packet in a ring shows that all earlier writes have arrived, which a software device
// may have done on a thread of its own. The race detector cannot see that order in the
// ring, whose memory is not Go's; it sees a lock of the device.
func (d *lane) orderAfterRing() { d.qp.Pending() }

// offerByRing posts packets to a peer that has a ring for this rank: by the ring while
// it has room, else by the receive queue. It returns how many the device accepted.
func (e *Held) offerByRing(l *p2p.Link, wrs []rdma.SendWR) (taken int, err error) {
	for taken < len(wrs) {
		wr := wrs[taken : taken+1]
		writes := e.m.ByRing(l, &wr[0], &e.ringWrites)
		if writes > 0 {
			wr = e.ringWrites[:writes]
		}
		n, err := l.QP.PostSend(wr)
		e.ringWrites[0].Body = rdma.Mem{} // release the user's buffer to the garbage collector
		if writes > 0 && !l.Wrote(n, writes) || n == 0 {
			return taken, err
		}
		taken++
	}
	return taken, nil
}

// closeRings frees the rings of a lane. The device is closed, or no peer can write any
// more.
func (d *lane) closeRings() {
	for _, l := range d.rings {
		mem, mr := l.RingMemory()
		_ = d.dev.Deregister(mr) // a closed device has ended the registration
		freeRing(mem)
	}
	d.rings = nil
}
