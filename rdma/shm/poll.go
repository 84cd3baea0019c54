package shm

import (
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// The road of a message in: poll gives back what the last poll lent, hands out
// completions of requests, looks at each open ring, then at the shared queue,
// and last moves a piece of the copies that are under way. Looking costs a load
// for each ring and one for the queue.

// Poll is written out here, and not a call of the device's, because a waiting rank
// does nothing else.
func (c *completionQueue) Poll(out []rdma.Completion) int {
	d := c.dev
	// A message from the only busy sender is what is awaited most often: nothing
	// else is looked at then, up to a few times.
	if len(d.rings) == 1 && d.skipped < maxSkipped && d.queue.freed == d.queue.pos {
		if r := d.rings[0]; r.pause == 0 && r.ready() {
			d.skipped++
			r.release()
			if tag := r.cell.tag.load(); len(out) > 0 && d.recv.lend && r.sent != d.sent && tag>>24&0xff == uint64(kindData) {
				// Something was sent since the last message: this is probably the
				// answer, with nothing behind it.
				n, cell := int(tag&0xffffff), r.cell
				o := &out[0]
				o.ID, o.Op, o.Status, o.Peer, o.Len = 0, rdma.OpRecv, rdma.StatusOK, rdma.PeerID(r.source), uint64(n)
				if n <= ringInline {
					o.Data = rdma.MemOf(cell.data[:n])
					r.pos++
					r.turn()
				} else {
					o.Data = rdma.MemOf(r.pop())
				}
				r.sent, r.streak = d.sent, 0
				d.came++
				return 1
			}
			k := d.pollRing(r, out)
			r.saw(k, d.sent)
			d.came += uint64(k)
			return k
		}
	}
	return d.pollAll(out)
}

// maxSkipped is how many polls may pass over everything but rings.
const maxSkipped = 8

func (d *Device) pollAll(out []rdma.Completion) int {
	if d.queue.freed != d.queue.pos {
		d.queue.release()
	}
	n := 0
	if !d.done.empty() {
		n = d.done.drain(out)
	}
	if d.recv.low {
		n += d.pollLowWater(out[n:])
	}
	if d.closing != nil {
		d.dropRing(d.closing)
	}
	for range d.rings {
		// The next poll begins with the next ring, so that no sender starves
		// when out is too short for all.
		if d.nextRing++; d.nextRing >= len(d.rings) {
			d.nextRing = 0
		}
		r := d.rings[d.nextRing]
		r.release()
		if r.due() {
			k := d.pollRing(r, out[n:])
			r.saw(k, d.sent)
			n += k
		}
	}
	// Who has a ring sends much: as long as rings have something, the shared queue
	// is looked at only now and then.
	if d.skipped++; n == 0 || d.skipped >= maxSkipped {
		d.skipped = 0
		if d.queue.ready() {
			n += d.pollShared(out[n:])
		}
	}
	if d.copies.busy() {
		d.copies.progress(d)
		n += d.done.drain(out[n:])
	}
	d.came += uint64(n)
	return n
}

func (d *Device) pollRing(r *ringReader, out []rdma.Completion) int {
	n := 0
	for n < len(out) && r.ready() {
		switch k := r.kind(); {
		case k == kindData:
			if !d.recv.open() {
				return n
			}
			d.recv.place(&out[n], r.source, r.pop())
			n++
		case k == kindRingClose:
			if d.closing == nil { // else at a later poll, after the other one
				r.pop()
				d.closing = r
			}
			return n
		default:
			d.answer(k, r.source, r.pop())
		}
	}
	return n
}

func (d *Device) pollShared(out []rdma.Completion) int {
	n := 0
	for n < len(out) && d.queue.ready() {
		source, k, data := d.queue.message()
		switch {
		case k == kindRingOpen:
			d.rings = append(d.rings, openRingReader(d.seg, int(data[0]), source))
		case k != kindData:
			d.answer(k, source, data)
		case !d.recv.open():
			return n
		default:
			d.recv.place(&out[n], source, data)
			n++
		}
		d.queue.advance()
	}
	return n
}

// dropRing gives the ring of a sender that has closed to the next one.
func (d *Device) dropRing(r *ringReader) {
	r.tell()
	clearBit(&d.seg.head.ringUsed, r.number)
	i := slices.Index(d.rings, r)
	d.rings = slices.Delete(d.rings, i, i+1)
	d.closing = nil
	d.nextRing = 0
}

func (d *Device) pollLowWater(out []rdma.Completion) int {
	if len(out) == 0 {
		return 0
	}
	d.recv.low = false
	d.lowWaters++
	out[0] = rdma.Completion{Op: rdma.OpLowWater, Len: uint64(d.recv.count())}
	return 1
}

// pending tells whether poll would find something.
func (d *Device) pending() bool {
	d.mu.Lock()
	local := d.closing != nil || !d.done.empty() || d.recv.low || d.copies.ready(d)
	d.mu.Unlock()
	return local || d.arrived()
}

// arrived tells whether a message is there and can be taken.
func (d *Device) arrived() bool {
	open := d.recv.open()
	for _, r := range d.rings {
		if r.ready() && (open || r.kind() != kindData) {
			return true
		}
	}
	if !d.queue.ready() {
		return false
	}
	_, k, _ := d.queue.message()
	return open || k != kindData
}
