package dgram

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Long segments of Reads and Writes that are received where they belong, without a stay in
// a slot. expects says when it is worth a look, receiveInPlace looks at the front of the
// datagram that comes next, placeOf finds its place, and the kernel puts header and seal
// into a slot and the octets into the place. Then the seal is checked, and hear takes the
// datagram in as any other; deliver finds that its octets are there.
//
// What is looked at first is believed by nobody else: until the seal was checked, only octets
// were placed that nobody has been told of. They lie where the next segment of this peer
// belongs, which is memory that the peer may write now. A datagram that fails the check is
// dropped and the true one is placed over it. A device that encrypts has no use for this.

const (
	// placeAbove is the length of octets from which a look costs less than a copy.
	// Datagrams that the kernel may join are shorter.
	placeAbove = 10 << 10
	// frontLen is how much of a datagram is looked at: all headers have room in it.
	frontLen = longestHeader + ddp.UntaggedLen
)

// inPlace is what a device keeps for it.
type inPlace struct {
	reads   int  // of our own under way that are long
	midway  bool // the latest segment of a Read or Write was long and not the last
	count   uint64
	looked  [frontLen]byte
	content header
}

// expects tells whether a datagram that can be received in place may be the next.
func (d *Device) expects() bool { return d.inPlace.reads > 0 || d.inPlace.midway }

// placeable tells whether datagrams of this device can be received in place at all.
func (d *Device) placeable() bool { return d.mss() >= placeAbove && !d.keys.encrypt }

// note learns from a segment of a Read or Write what may follow it.
func (d *Device) note(h *ddp.Header, length int) {
	d.inPlace.midway = !h.Last && length >= placeAbove && d.placeable()
}

// begins and ends count long Reads of ours.
func (d *Device) begins(one *ask) {
	if one.op == rdma.OpRead && one.length >= placeAbove && d.placeable() {
		d.inPlace.reads++
	}
}

func (d *Device) ends(one *ask) {
	if one.op == rdma.OpRead && one.length >= placeAbove && d.placeable() {
		d.inPlace.reads--
	}
}

// receiveInPlace takes in the next datagram, in place if it can be.
func (d *Device) receiveInPlace() bool {
	if !d.fillBatch(1) {
		return false
	}
	looked := d.inPlace.looked[:]
	n, whole := d.socket.look(looked)
	if whole == 0 {
		return false
	}
	place, front := d.placeOf(looked[:n], whole)
	if place == nil {
		return d.receiveOne()
	}
	last := len(d.batch) - 1
	s := d.batch[last]
	if !d.socket.receiveInto(s, front, place) {
		return false
	}
	d.orderAfterReceiving()
	if s.n != whole || d.keys.checkGathered(s.data[:front], place, s.data[front:front+sealLen]) != nil {
		d.drops.Corrupt++
		return true
	}
	h := &d.inPlace.content
	segment, err := h.parse(s.data[:front])
	if err != nil {
		d.drops.Malformed++
		return true
	}
	s.hi = front
	s.lo = front - len(segment)
	s.placed = place
	d.traffic.received++
	d.inPlace.count++
	q := d.pairs[h.to]
	d.tick()
	q.hear(s, q.peers[d.latestID], h)
	s.placed = nil
	return true
}

// placeOf finds where the octets of a datagram belong that begins so and has so many octets
// in all, and how long its headers are. It is nil for one that goes the usual way.
func (d *Device) placeOf(looked []byte, whole int) (place []byte, front int) {
	h := &d.inPlace.content
	segment, err := h.parse(looked[:min(len(looked), max(0, whole-sealLen))])
	if err != nil || h.kind != kindSegment || h.toLife != d.keys.life || int(h.to) >= len(d.pairs) || d.pairs[h.to] == nil || looked[1]&flagEncrypted != 0 {
		return nil, 0
	}
	q := d.pairs[h.to]
	id, known := d.find(h.fromLife, h.from)
	if !known || q.kind != rdma.RD || int(id) >= len(q.peers) || q.peers[id] == nil {
		return nil, 0
	}
	p := q.peers[id]
	if p.judge(h.number) != inOrder {
		return nil, 0
	}
	var tagged ddp.Header
	front = len(looked) - len(segment)
	n, fault := tagged.Decode(segment, whole-sealLen-front)
	front += n
	length := whole - sealLen - front
	if fault != ddp.NoFault || length < placeAbove || front > len(looked) {
		return nil, 0
	}
	switch {
	case tagged.Op == ddp.Write && p.refused == ddp.NoFault:
		place, fault = d.table.Place(domain, streamOf(p), tagged.Tag, tagged.TO, uint64(length))
		if fault != ddp.NoFault {
			return nil, 0
		}
	case tagged.Op == ddp.ReadResponse && p.asks != nil:
		one := p.asks.oldest()
		if one.tag != tagged.Tag || tagged.TO != uint64(one.got) || length > one.sink.Len()-one.got {
			return nil, 0
		}
		place = one.sink.Bytes()[one.got : one.got+length]
	}
	return place, front
}

// put copies octets to their place, unless they were received there.
func put(place, octets []byte) {
	if len(octets) > 0 && &place[0] != &octets[0] {
		copy(place, octets)
	}
}
