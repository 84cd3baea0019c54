package dgram

import (
	"bytes"

	"github.com/muster-mpi/muster/rdma/internal/crc32c"
)

// Runs of a response to a Read of ours are received in place, like long datagrams
// (inplace.go): the kernel puts the payload of each packet behind that of the one before,
// and the indexes into a slot. For a Write of a peer it may not: the tag covers the CRCs,
// which are in all packets, so it cannot be checked before the run is received.

// placedRun is a run that is received in place.
type placedRun struct {
	looked  [indexLen + tagLen + coveredLen]byte
	packets int
	wire    int // length of its packets
	whole   int // length of all of them
	front   int // what precedes the payload in the first
	target  []byte
}

// expectsRun reports whether the next message of a socket may be a run that is receivable in
// place.
func (d *Device) expectsRun(from *socket) bool {
	return d.inPlace.reads > 0 && from.joinsRuns() && from.peeks() && !d.keys.encrypt
}

// receiveRunInPlace receives the next datagrams, in place if they are a run for a Read.
func (d *Device) receiveRunInPlace(from *socket) bool {
	if !d.fillBatch(1) {
		return false
	}
	r := &d.inPlace.run
	n, whole := from.look(r.looked[:])
	if whole == 0 {
		return false
	}
	if !d.findSink(r, n, whole) {
		return d.receiveOne(from)
	}
	s := d.batch[len(d.batch)-1]
	if !from.receiveRunInto(s, r) {
		return false
	}
	d.orderAfterReceiving()
	if s.n != r.whole || !bytes.Equal(s.data[:r.front], r.looked[:r.front]) {
		d.drops.Corrupt++ // it is not the one that was peeked at
	} else if !d.takePlaced(s, r) {
		d.takeDisplaced(s, r)
	}
	r.target = nil
	return true
}

// findSink reports whether a message of that length, of which n bytes are in r.looked, is a
// run whose payload may be received in place, and fills in r.
func (d *Device) findSink(r *placedRun, n, whole int) bool {
	const front = indexLen + tagLen
	if n < len(r.looked) || !isRun(r.looked[:]) {
		return false
	}
	var x runIndex
	x.decode(r.looked[:])
	r.packets, r.wire, r.whole = int(x.packets), int(x.each)+indexLen, whole
	if x.position != 0 || x.flags&(flagEncrypted|flagLone) != 0 || !x.possible() || whole <= (r.packets-1)*r.wire+indexLen || whole > r.packets*r.wire {
		return false
	}
	target, headers, sink := d.targetOf(r.looked[front:], whole-r.packets*indexLen-tagLen)
	if !sink || front+headers > r.wire {
		return false
	}
	r.target, r.front = target, front+headers
	return true
}

// takePlaced checks and processes a run that was received in place. It returns false if
// a packet is corrupt.
func (d *Device) takePlaced(s *slot, r *placedRun) bool {
	k := d.keys
	var first, next runIndex
	first.decode(s.data)
	pad := k.pad(&first)
	n := copy(k.comingRun[:coveredLen], s.data[indexLen+tagLen:r.front])
	copy(k.comingRun[n:coveredLen], r.target)
	crc, rest := crc32c.Checksum(s.data[indexLen+tagLen:r.front]), r.target
	for i := range r.packets {
		room := r.wire - indexLen
		if next = first; i == 0 {
			room = r.wire - r.front
		} else {
			next.decode(s.data[r.front+(i-1)*indexLen:])
		}
		chunk := rest[:min(room, len(rest))]
		rest = rest[len(chunk):]
		if crc = crc32c.Update(crc, chunk); crc != next.crc^pad || !next.continues(&first, i) {
			return false
		}
		k.listCRC(i, crc)
		crc = 0
	}
	h := &d.inPlace.content
	if k.tagsRun(s.data[indexLen:indexLen+tagLen], r.packets) != nil {
		return false
	}
	segment, err := h.parse(s.data[indexLen+tagLen : r.front])
	if err != nil {
		d.drops.Malformed++
		return true
	}
	s.hi = r.front
	s.lo = r.front - len(segment)
	s.placed, s.run, s.wire = r.target, r.packets, 0
	d.traffic.received += uint64(r.packets)
	d.inPlace.count++
	q := d.pairs[h.to]
	d.tick()
	q.receiveRD(s, q.peers[d.latestID], h)
	s.placed, s.run = nil, 0
	return true
}

// takeDisplaced processes the packets of a run one by one, after it was received in place:
// those that are not corrupt are used.
func (d *Device) takeDisplaced(s *slot, r *placedRun) {
	var one [maxDatagram / 4]byte
	if r.wire > len(one) {
		d.drops.Corrupt++
		return
	}
	rest := r.target
	for i := range r.packets {
		n := copy(one[:], s.data[:r.front])
		if i > 0 {
			n = copy(one[:], s.data[r.front+(i-1)*indexLen:][:indexLen])
		}
		part := copy(one[n:r.wire], rest)
		rest = rest[part:]
		d.arriveLone(one[:n+part])
	}
}
