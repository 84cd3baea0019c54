package dgram

import "bytes"

// Runs of a response to a Read of ours are received in place, like long datagrams
// (inplace.go): the kernel puts the payload of each packet behind that of the one before,
// and the indexes into a slot, where they have the place that they would have beside the payload. For a Write of a peer it may not: the tag covers the CRCs,
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
		return true
	}
	copy(s.data, r.looked[:]) // the tag covers the first bytes of the payload
	one := &d.part
	one.from, one.part, one.placed = s.from, true, r.target
	if d.takeRun(one, s.data[:s.n], r.wire); one.placed != nil {
		d.inPlace.count++
	}
	one.data, one.placed, r.target = nil, nil, nil
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
	if !sink || front+headers >= r.wire {
		return false
	}
	r.target, r.front = target, front+headers
	return true
}

// restore puts payload that was received in place between the indexes of its packets.
func (s *slot) restore() {
	at := s.n - (s.run-1)*indexLen - len(s.placed)
	for len(s.placed) > 0 {
		n := copy(s.data[at:min(at-at%s.wire+s.wire, s.n)], s.placed)
		s.placed, at = s.placed[n:], at+n+indexLen
	}
	s.placed = nil
}
