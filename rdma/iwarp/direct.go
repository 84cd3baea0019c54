package iwarp

import (
	"encoding/binary"
	"errors"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/crc32c"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Direct placement: payload that is placed before its frame is complete. begin parses the
// header of a long segment and places what has arrived, with the CRC in the same pass. If
// that is not all of it, the socket is read into the rest of the destination. end checks
// the CRC, and only then is the segment delivered: bytes of a damaged frame may have been
// placed, inside a region that the peer may write, but they are not reported (RFC 5044
// section 8 ends the stream). With markers in the stream everything goes through the buffer.
// Encrypted payload is decrypted into the destination.

// directAbove is the payload from which reading to the destination pays off: a shorter one
// needs only one read.
const directAbove = 4 << 10

// directBehind is how much is read into the buffer after the payload: the end of the frame
// and what is likely to follow, but not so much that a long payload is copied.
const directBehind = 2 << 10

// direct is a segment that is being placed.
type direct struct {
	on     bool
	header ddp.Header
	raw    [ddp.UntaggedLen]byte
	size   int // of the payload
	whole  int // of the segment
	got    int // of the payload
	crc    uint32
	pieces [2]piece
	lowat  int // bytes from which the socket ends a sleep, 0: any
}

// awaitRest makes the rest of a long segment end a sleep on the socket, and not each of the
// packets that bring it: a progress thread takes the core of a computation for each of its
// wake-ups. The rest is under way, because the peer has sent the header.
func (q *queuePair) awaitRest() {
	d := &q.in.direct
	if !d.on || q.secret != nil {
		return
	}
	if rest := d.size - d.got; rest > directAbove && rest != d.lowat {
		d.lowat = rest
		q.fd.setLowWater(rest)
	}
}

// awaitAny undoes awaitRest, after a read: with less than the rest to come, the socket would not
// become readable.
func (q *queuePair) awaitAny() {
	if d := &q.in.direct; d.lowat != 0 {
		d.lowat = 0
		q.fd.setLowWater(1)
	}
}

// begin reports whether the frame at the front of the buffer is now placed. A segment with
// a fault is not: it is processed when its CRC has been verified. Neither is a short one,
// a complete one without a CRC, which needs no pass but the copy, and a message that can
// be lent where it is.
func (q *queuePair) begin() bool {
	in, d := &q.in, &q.in.direct
	have := in.buf[in.lo:in.hi]
	if in.mpa.markers || len(have) < fpduLength+1 || len(have) < fpduLength+ddp.HeaderLen(have[fpduLength]) {
		return false
	}
	if d.whole = int(binary.BigEndian.Uint16(have)); d.whole < onePass {
		return false
	}
	segment := have[fpduLength:]
	n, f := d.header.Decode(segment, d.whole)
	d.size = d.whole - n
	arrived := min(len(segment)-n, d.size)
	if f != ddp.NoFault || d.header.Op.Control() || arrived < d.size && d.size < directAbove || arrived == d.size && !in.mpa.crc {
		return false
	}
	in.hint, in.whole, in.wire = d.size, d.header.Last && d.header.MO == 0, fpduSize(d.whole)
	if d.header.Op != ddp.Write && d.header.Op != ddp.ReadResponse && q.lendable(d.size) {
		return false
	}
	mem, f := q.stream.Placement(&d.header, 0, d.size)
	if f != ddp.NoFault {
		in.starved = f == ddp.FaultNoBuffer
		return false
	}
	in.starved = false
	copy(d.raw[:], segment[:n])
	if d.got = arrived; in.mpa.crc {
		d.crc = crc32c.Copy(mem, segment[n:n+arrived], crc32c.Checksum(have[:fpduLength+n]))
	} else {
		copy(mem, segment[n:n+arrived])
	}
	if in.lo, in.need = in.lo+fpduLength+n+arrived, 0; in.lo == in.hi {
		in.lo, in.hi = 0, 0
	}
	d.on = true
	return true
}

// readDirect reads into the rest of the destination, and a little beyond it.
func (q *queuePair) readDirect() (n, room int, err error) {
	in, d := &q.in, &q.in.direct
	// The destination is looked up again: it may have been deregistered since.
	mem, f := q.stream.Placement(&d.header, d.got, d.size-d.got)
	if f != ddp.NoFault {
		q.fault(f, d.raw[:], d.whole)
		return 0, 0, nil
	}
	if q.secret != nil {
		n, err = q.secret.read(mem, false)
		q.in.unread = q.secret.more()
		if d.got += n; in.mpa.crc {
			d.crc = crc32c.Update(d.crc, mem[:n])
		}
		return n, len(mem), err
	}
	d.pieces = [2]piece{pieceOf(mem), pieceOf(in.buf[in.hi : in.hi+directBehind])}
	room = len(mem) + directBehind
	n, err = scatter(q.fd, d.pieces[:])
	d.pieces = [2]piece{}
	if n > 0 {
		q.awaitAny()
		k := min(n, len(mem))
		d.got += k
		in.hi += n - k
		if in.mpa.crc {
			d.crc = crc32c.Update(d.crc, mem[:k])
		}
	}
	return n, room, err
}

// end delivers the segment if all of its frame has arrived.
func (q *queuePair) end() bool {
	in, d := &q.in, &q.in.direct
	tail := padding(d.whole) + fpduCRC
	if d.got < d.size || in.hi-in.lo < tail {
		return false
	}
	have := in.buf[in.lo : in.lo+tail]
	in.lo += tail
	d.on = false
	if in.mpa.crc && crc32c.Update(d.crc, have[:tail-fpduCRC]) != binary.LittleEndian.Uint32(have[tail-fpduCRC:]) {
		q.fault(ddp.FaultMPACRC, nil, 0)
		return true
	}
	if f := q.stream.Deliver(&d.header, d.size, nil, &in.event); f != ddp.NoFault {
		q.fault(f, d.raw[:], d.whole)
		return true
	}
	q.handleEvent()
	return true
}

// more reads the socket: into the destination of a partly received segment, or into the
// buffer. It returns false if there is nothing more for now, or the connection has ended.
func (q *queuePair) more() bool {
	in := &q.in
	if in.lo == in.hi {
		in.lo, in.hi = 0, 0
	}
	if len(in.buf)-in.lo < max(in.need, directBehind) {
		in.hi = copy(in.buf, in.buf[in.lo:in.hi])
		in.lo = 0
	}
	var n, room int
	var err error
	if in.direct.on && in.direct.got < in.direct.size {
		n, room, err = q.readDirect()
	} else {
		room = len(in.buf) - in.hi
		if n, err = q.fetch(in.buf[in.hi:]); n > 0 {
			in.hi += n
		}
	}
	switch {
	case q.state != connected || notNow(err):
		return false
	case err != nil || n == 0:
		why := rdma.StatusPeerGone // reset, or the peer has closed
		if errors.Is(err, errRecord) {
			why = rdma.StatusFault
		}
		q.cause = q.explain(err)
		q.lose(why)
		return false
	}
	q.segments()
	// A short read means that the socket is empty: another read would only confirm it.
	return n == room || q.in.unread
}

// fetch is read for this connection.
func (q *queuePair) fetch(b []byte) (int, error) {
	if q.secret == nil {
		return read(q.fd, b)
	}
	n, err := q.secret.read(b, true)
	q.in.unread = q.secret.more()
	return n, err
}
