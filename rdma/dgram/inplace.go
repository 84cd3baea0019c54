package dgram

import (
	"bytes"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Long segments of Reads and Writes that are received where they belong, without a stay in
// a slot. expects says when it is worth a look, receiveInPlace looks at the front of the
// datagram that comes next, placeOf finds its place, and the kernel puts header and seal
// into a slot and the bytes into the place. Then the seal is checked, and hear takes the
// datagram in as any other; deliver finds that its bytes are there.
//
// Anybody can send a datagram that looks like the next one, so what may be placed before
// its seal was checked?
//
//   - The answer to a Read of ours: only behind what has come of it, up to the end of its
//     sink. All of that is written again by true segments before the Read ends, and
//     nobody may look at it before (RFC 5040 section 5.5).
//   - A Write of a peer: nothing. Where its true end is, no segment tells, and memory behind
//     it may be in use. So genuine checks the tag first, which covers all headers and
//     the CRC. The seal is behind the bytes, and SO_PEEK_OFF (socket(7)) shows it without
//     them. If the CRC is wrong then, the true datagram was changed on its way, and its own
//     place has wrong bytes, of which nobody is told, until it comes again.
//
// A device that encrypts has no use for this.

const (
	// placeAbove is the length of bytes from which a look costs less than a copy.
	// Datagrams that the kernel may join are shorter.
	placeAbove = 10 << 10
	// frontLen is how much of a datagram is looked at: what the tag covers, in which all
	// headers have room.
	frontLen = coveredLen
)

// inPlace is what a device keeps for it.
type inPlace struct {
	reads   int  // of our own under way that are long
	midway  bool // the latest segment of a Read or Write was long and not the last
	count   uint64
	looked  [frontLen]byte
	seal    [sealLen]byte
	content header
}

// expects reports whether a datagram that can be received in place may be the next.
func (d *Device) expects() bool {
	return (d.inPlace.reads > 0 || d.inPlace.midway) && d.socket.peeks()
}

// placeable reports whether datagrams of this device can be received in place at all.
func (d *Device) placeable() bool {
	return d.mss() >= placeAbove && !d.keys.encrypt && d.socket.peeks()
}

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
	place, front, sink := d.placeOf(looked[:n], whole)
	if place == nil || !sink && !d.genuine(whole) {
		return d.receiveOne()
	}
	last := len(d.batch) - 1
	s := d.batch[last]
	if !d.socket.receiveInto(s, front, place) {
		return false
	}
	d.orderAfterReceiving()
	if seal := s.data[front : front+sealLen]; s.n != whole || !d.keys.sumsUp(s.data[:front], place, seal) || !d.sealed(seal, sink) {
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

// genuine reports whether the datagram that was looked at, so many bytes long, comes from a
// process of the job.
func (d *Device) genuine(whole int) bool {
	k, at := d.keys, &d.inPlace
	if !d.socket.lookAt(whole-sealLen, at.seal[:]) {
		return false
	}
	copy(k.coming[:], at.looked[:])
	copy(k.coming[coveredLen:], at.seal[:crcLen])
	return k.tagged(at.seal[crcLen:])
}

// sealed reports whether the datagram that came, of which coming has what the tag covers, has
// the right tag: it is checked now, or this is the one that genuine has checked.
func (d *Device) sealed(seal []byte, now bool) bool {
	if now {
		return d.keys.tagged(seal[crcLen:])
	}
	return bytes.Equal(seal, d.inPlace.seal[:]) && bytes.Equal(d.keys.coming[:coveredLen], d.inPlace.looked[:])
}

// placeOf finds where the bytes of a datagram belong that begins so and has so many bytes
// in all, and how long its headers are; sink says that it is that of a Read of ours. The place
// is nil for one that goes the usual way.
func (d *Device) placeOf(looked []byte, whole int) (place []byte, front int, sink bool) {
	h := &d.inPlace.content
	segment, err := h.parse(looked[:min(len(looked), max(0, whole-sealLen))])
	if err != nil || h.kind != kindSegment || h.toLife != d.keys.life || int(h.to) >= len(d.pairs) || d.pairs[h.to] == nil || looked[1]&flagEncrypted != 0 {
		return nil, 0, false
	}
	q := d.pairs[h.to]
	id, known := d.find(h.fromLife, h.from)
	if !known || q.kind != rdma.RD || int(id) >= len(q.peers) || q.peers[id] == nil {
		return nil, 0, false
	}
	p := q.peers[id]
	if p.judge(h.number) != inOrder || p.serials.late(h.serial) {
		return nil, 0, false
	}
	var tagged ddp.Header
	front = len(looked) - len(segment)
	n, fault := tagged.Decode(segment, whole-sealLen-front)
	front += n
	length := whole - sealLen - front
	if fault != ddp.NoFault || length < placeAbove || front > len(looked) {
		return nil, 0, false
	}
	switch {
	case tagged.Op == ddp.Write && p.refused == ddp.NoFault && !d.guard.Bars(p.strikes, d.peers[id].told):
		place, fault = d.table.Placement(domain, streamOf(p), tagged.Tag, tagged.TO, uint64(length))
		if fault != ddp.NoFault {
			return nil, 0, false
		}
	case tagged.Op == ddp.ReadResponse && p.asks != nil:
		one := p.asks.oldest()
		if one.tag != tagged.Tag || tagged.TO != uint64(one.got) || length > one.sink.Len()-one.got {
			return nil, 0, false
		}
		place, sink = one.sink.Bytes()[one.got:one.got+length], true
	}
	return place, front, sink
}

// put copies bytes to their place, unless they were received there.
func put(place, bytes []byte) {
	if len(bytes) > 0 && &place[0] != &bytes[0] {
		copy(place, bytes)
	}
}
