package iwarp

import (
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Receiving: receive reads the socket, MPA's deframer finds the segments, arrive places
// each, and handleEvent handles its events. Long segments take the shorter path of
// direct.go.

// inbound is the receiving side of a queue pair.
type inbound struct {
	mpa     deframer
	buf     []byte // bytes [lo, hi) were read and not used; nil if there are none
	lo, hi  int
	need    int    // bytes needed for a whole FPDU at lo
	segment []byte // deframed, and not placed yet
	wire    int    // bytes of it in buf
	starved bool   // waits for a receive buffer
	unread  bool   // secret has more data, which the socket does not indicate
	hint    int    // length of the segment for which a buffer is needed
	whole   bool   // whether it is the whole message
	here    []byte // the payload, if it can be lent in place
	given   bool   // buf was lent
	// completed: the user is to handle a message that came in this call of progress.
	completed bool
	direct    direct
	event     ddp.Event
}

// mostReads bounds the input of one call of progress, so that a busy peer does not delay
// others.
const mostReads = 8

func (in *inbound) start(t terms) {
	in.mpa = deframer{crc: t.crc, markers: t.markersIn}
}

// receive processes the input of the socket.
func (q *queuePair) receive() {
	if q.state == draining {
		q.discard()
		return
	}
	if q.in.buf == nil {
		q.in.buf = q.dev.takeBuffer()
	} else {
		q.segments() // that were left
	}
	for reads := 0; reads < mostReads && !q.in.starved && q.state == connected && q.more(); reads++ {
	}
	if in := &q.in; in.lo == in.hi && in.segment == nil {
		q.dev.giveBuffer(in.buf)
		in.buf, in.lo, in.hi = nil, 0, 0
	}
}

// segments handles the complete segments in the buffer.
func (q *queuePair) segments() {
	in := &q.in
	for q.state == connected {
		if in.direct.on {
			if !q.end() {
				return
			}
			continue
		}
		if in.segment == nil {
			if q.begin() {
				continue
			}
			if in.hi-in.lo < in.need {
				return
			}
			segment, n, need, err := in.mpa.next(in.buf[in.lo:in.hi])
			if err != nil {
				var bad *mpaError
				if errors.As(err, &bad) {
					q.fault(bad.fault, nil, 0)
				}
				return
			}
			if in.need = need; n == 0 {
				continue
			}
			in.segment, in.wire = segment, n
		}
		if !q.arrive(in.segment) {
			in.starved = true
			return
		}
		in.starved = false
		in.lo += in.wire
		in.segment = nil
		if in.given {
			in.given = false
			in.buf, in.lo, in.hi = q.dev.takeBuffer(), 0, 0
		}
	}
}

// arrive handles one segment. It returns false if there is no buffer for it yet: then TCP
// makes the peer wait, with everything that it has sent after it (RFC 5041 would end the
// stream).
func (q *queuePair) arrive(segment []byte) bool {
	var h ddp.Header
	n, f := h.Decode(segment, len(segment))
	if f != ddp.NoFault {
		q.fault(f, segment, len(segment))
		return true
	}
	payload := segment[n:]
	q.in.hint, q.in.whole = len(payload), h.Last && h.MO == 0
	if q.lendable(len(payload)) {
		q.in.here = payload
	}
	mem, f := q.stream.Placement(&h, 0, len(payload))
	q.in.here = nil
	if f == ddp.FaultNoBuffer {
		return false
	}
	if f == ddp.NoFault {
		if len(mem) > 0 && &mem[0] != &payload[0] {
			copy(mem, payload)
		}
		f = q.stream.Deliver(&h, len(payload), payload, &q.in.event)
	}
	if f != ddp.NoFault {
		q.fault(f, segment, len(segment))
		return true
	}
	q.handleEvent()
	return true
}

// handleEvent handles the event of a delivered segment. A Read request needs nothing here:
// the stream stores the pending responses.
func (q *queuePair) handleEvent() {
	q.out.mute = false
	switch e := &q.in.event; e.Kind {
	case ddp.Received:
		q.completeReceive(e)
	case ddp.Fetched:
		w := q.works.at(e.ID)
		q.complete(w, rdma.StatusOK, w.body.Len())
		q.works.retire(q.dev)
	case ddp.Terminated:
		q.handleTerminate(e.Fault)
	}
}

// lendable reports whether a message of n bytes can be lent in the buffer that it was read
// into: if the buffer contains nothing else, and the user does not hold too many of them.
func (q *queuePair) lendable(n int) bool {
	in := &q.in
	return q.recvs.Lends && in.whole && n >= lendHereAbove && in.lo+in.wire == in.hi && q.dev.lentOut < mostLentOut
}

// Take provides the stream with a buffer for the next message.
func (q *queuePair) Take() (rdma.RecvWR, bool) {
	if here := q.in.here; here != nil {
		q.in.here = nil
		return rdma.RecvWR{ID: hereBit, Body: rdma.MemOf(here)}, true
	}
	return q.take(q.in.hint, q.in.whole)
}

func (q *queuePair) completeReceive(e *ddp.Event) {
	q.in.completed = true
	c := rdma.Completion{Op: rdma.OpRecv, ID: e.Recv.ID, Peer: q.name, Data: e.Recv.Body.Slice(0, int(e.Len)), Len: uint64(e.Len)}
	if !q.recvs.Lends {
		q.recvCQ.Push(c)
		return
	}
	loan := lentBuffer{queue: q.recvs, id: e.Recv.ID}
	if loan.id == hereBit {
		loan.whole = (*[ioBuffer]byte)(q.in.buf)
		q.dev.lentOut++
		q.in.given = true
	}
	c.ID = 0
	q.recvCQ.Lend(c, loan)
}

// handleTerminate ends the queue pair because of the peer's Terminate.
func (q *queuePair) handleTerminate(f ddp.Fault) {
	why := rdma.StatusFault
	if f.Access() {
		why = rdma.StatusRemoteAccess
	}
	q.cause = fmt.Errorf("it has ended the connection because of what this process has sent: %v (RFC 5040 section 5.4)", f)
	q.lose(why)
}

// discard discards further input until the peer has read our Terminate and closes: closing
// earlier would make TCP reset the connection and lose it.
func (q *queuePair) discard() {
	waste := q.dev.takeBuffer()
	defer q.dev.giveBuffer(waste)
	for range mostReads {
		n, err := read(q.fd, waste)
		if notNow(err) {
			return
		}
		if err != nil || n == 0 {
			q.lose(q.reason)
			return
		}
	}
}
