package soft

import (
	"bytes"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// Long segments of Reads and Writes are received directly into their target memory,
// without a copy through a slot. expects reports when to try, receiveInPlace peeks at
// the front of the next datagram, targetOf finds its target, and the kernel puts header
// and seal into a slot and the payload into the target. Then the seal is checked, and
// receiveRD processes the datagram like any other; deliver finds the payload already
// placed.
//
// Anyone can send a datagram that looks like the next one, so what may be written
// before its seal is checked?
//
//   - The response to a Read of ours: only the part of its sink that has not arrived.
//     Correct segments overwrite all of it before the Read completes, and nobody may
//     read it before (RFC 5040 section 5.5).
//   - A Write of a peer: nothing. No segment reveals where the Write really ends, and
//     memory behind it may be in use. So genuine checks the tag first, which covers
//     all headers and the CRC. The seal is behind the payload, and SO_PEEK_OFF
//     (socket(7)) reads it without the payload. If the CRC then does not match, the
//     real datagram was corrupted in transit. Its own target holds wrong bytes until
//     it is retransmitted, and no completion reports them.
//
// A device that encrypts does not use this.

const (
	// inPlaceMin is the payload length from which a peek costs less than a copy.
	// Datagrams that the kernel may coalesce are shorter.
	inPlaceMin = 10 << 10
	// frontLen is how much of a datagram is peeked at: what the tag covers, which
	// includes all headers.
	frontLen = coveredLen
)

// inPlace is the state of in-place reception.
type inPlace struct {
	reads   int  // long Reads of ours in flight
	midway  bool // the latest segment of a Read or Write was long and not the last
	count   uint64
	looked  [frontLen]byte
	seal    [sealLen]byte
	content header
}

// expects reports whether the next datagram may be receivable in place.
func (d *Device) expects() bool {
	return (d.inPlace.reads > 0 || d.inPlace.midway) && !d.net.several() && d.net.first.peeks()
}

// canReceiveInPlace reports whether datagrams of this device can be received in place
// at all.
func (d *Device) canReceiveInPlace() bool {
	return d.net.below == nil && d.mss() >= inPlaceMin && !d.keys.encrypt && !d.net.several() && d.net.first.peeks()
}

// note records what may follow a segment of a Read or Write.
func (d *Device) note(h *ddp.Header, length int) {
	d.inPlace.midway = !h.Last && length >= inPlaceMin && d.canReceiveInPlace()
}

// begins and ends count our long Reads.
func (d *Device) begins(one *request) {
	if one.op == rdma.OpRead && one.length >= inPlaceMin && d.canReceiveInPlace() {
		d.inPlace.reads++
	}
}

func (d *Device) ends(one *request) {
	if one.op == rdma.OpRead && one.length >= inPlaceMin && d.canReceiveInPlace() {
		d.inPlace.reads--
	}
}

// receiveInPlace receives the next datagram, in place if possible.
func (d *Device) receiveInPlace() bool {
	if !d.incoming.fillBatch(1) {
		return false
	}
	looked := d.inPlace.looked[:]
	n, whole := d.net.first.look(looked)
	if whole == 0 {
		return false
	}
	target, front, sink := d.targetOf(looked[:n], whole)
	if target == nil || !sink && !d.genuine(whole) {
		return d.receiveOne(d.net.first)
	}
	last := len(d.incoming.batch) - 1
	s := d.incoming.batch[last]
	if !d.net.first.receiveInto(s, front, target) {
		return false
	}
	race.OrderAfterReceiving()
	if seal := s.data[front : front+sealLen]; s.n != whole || !d.keys.sumsUp(s.data[:front], target, seal) || !d.sealed(seal, sink) {
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
	s.placed = target
	d.traffic.received++
	d.inPlace.count++
	q := d.pairs[h.to]
	d.clock.tick()
	q.receiveRD(s, q.peers[d.peers.latestID], h)
	s.placed = nil
	return true
}

// genuine reports whether the peeked datagram of the given length was sent by a process
// of the job.
func (d *Device) genuine(whole int) bool {
	k, at := d.keys, &d.inPlace
	if !d.net.first.lookAt(whole-sealLen, at.seal[:]) {
		return false
	}
	copy(k.coming[:], at.looked[:])
	copy(k.coming[coveredLen:], at.seal[:crcLen])
	return k.tagged(at.seal[crcLen:])
}

// sealed reports whether the received datagram, whose covered part is in coming, has a
// valid tag. It checks the tag if now is set; otherwise it checks that this is the
// datagram that genuine has checked.
func (d *Device) sealed(seal []byte, now bool) bool {
	if now {
		return d.keys.tagged(seal[crcLen:])
	}
	return bytes.Equal(seal, d.inPlace.seal[:]) && bytes.Equal(d.keys.coming[:coveredLen], d.inPlace.looked[:])
}

// targetOf returns the target memory of a datagram that begins with looked and has
// whole bytes, and the length of its headers. sink reports that the target belongs to a
// Read of ours. The target is nil for a datagram that must be received normally.
func (d *Device) targetOf(looked []byte, whole int) (target []byte, front int, sink bool) {
	h := &d.inPlace.content
	segment, err := h.parse(looked[:min(len(looked), max(0, whole-sealLen))])
	if err != nil || h.kind != kindSegment || h.toIncarnation != d.keys.incarnation || int(h.to) >= len(d.pairs) || d.pairs[h.to] == nil || looked[1]&flagEncrypted != 0 {
		return nil, 0, false
	}
	q := d.pairs[h.to]
	id, known := d.peers.find(h.fromIncarnation, h.from)
	if !known || q.kind != rdma.RD || int(id) >= len(q.peers) || q.peers[id] == nil {
		return nil, 0, false
	}
	p := q.peers[id]
	if p.Classify(h.sequence) != reliable.InOrder || p.serials.late(h.serial) {
		return nil, 0, false
	}
	var tagged ddp.Header
	front = len(looked) - len(segment)
	n, fault := tagged.Decode(segment, whole-sealLen-front)
	front += n
	length := whole - sealLen - front
	if fault != ddp.NoFault || length < inPlaceMin || front > len(looked) {
		return nil, 0, false
	}
	switch {
	case tagged.Op == ddp.Write && p.refused == ddp.NoFault && !d.guard.Bars(p.strikes, d.peers.list[id].resolved):
		target, fault = d.table.Placement(domain, streamOf(p), tagged.Tag, tagged.TO, uint64(length))
		if fault != ddp.NoFault {
			return nil, 0, false
		}
	case tagged.Op == ddp.ReadResponse && p.requests != nil:
		one := p.requests.oldest()
		if one.tag != tagged.Tag || tagged.TO != uint64(one.got) || length > one.sink.Len()-one.got {
			return nil, 0, false
		}
		target, sink = one.sink.Bytes()[one.got:one.got+length], true
	}
	return target, front, sink
}
