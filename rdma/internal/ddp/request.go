package ddp

import "encoding/binary"

// Queue 1, at the responder: reads (RFC 5040 section 5.2) and atomics (RFC 7306 section
// 5). A request waits in a queue of the negotiated depth, and a peer that sends more
// violates the agreement (RFC 5042 section 6.4.3.3). Responses leave in the order of the
// requests, each as far as there is room for it.

// request is a request with a pending response.
type request struct {
	op     Opcode
	number uint32
	read   ReadRequest
	atomic AtomicRequest
	sent   uint32 // bytes of the response that were sent
}

// requests is the responder's state.
type requests struct {
	next    uint32 // the number of the next request to be delivered
	answer  uint32 // the number of the next atomic response
	pending ring[request]
	result  [AtomicResponseLen]byte
}

// deliver queues a request.
func (q *requests) deliver(h *Header, body []byte) Fault {
	if h.MSN != q.next {
		return FaultMSN
	}
	if q.pending.full() {
		return FaultNoBuffer
	}
	r := request{op: h.Op, number: h.MSN}
	ok := false
	switch h.Op {
	case ReadRequestOp:
		ok = r.read.Decode(body)
	case AtomicRequestOp:
		ok = r.atomic.Decode(body) && (r.atomic.Code == FetchAdd || r.atomic.Code == CompareSwap)
	}
	if !ok {
		return FaultUnspecified
	}
	*q.pending.push() = r
	q.next++
	return NoFault
}

// respond makes the next segment of the oldest response.
func (q *requests) respond(s *Stream, room int) (h Header, payload []byte, f Fault) {
	r := q.pending.at(0)
	done := true
	if r.op == AtomicRequestOp {
		h, payload, f = q.atomic(s, &r.atomic)
	} else {
		h, payload, f = r.segment(s, room)
		r.sent += uint32(len(payload))
		done = h.Last
	}
	if done && f == NoFault {
		q.pending.pop()
	}
	return h, payload, f
}

// segment returns the next piece of a read. It checks the source for each piece, because
// it may have been deregistered since the last. An empty read is not checked (RFC 5040
// section 5.2.1).
func (r *request) segment(s *Stream, room int) (h Header, payload []byte, f Fault) {
	m := Message{Header: Header{Op: ReadResponse, Tag: r.read.Sink, TO: r.read.SinkTO}, Len: r.read.Size}
	h, n := m.Segment(r.sent, room)
	if r.read.Size == 0 {
		return h, nil, NoFault
	}
	// Checks everything that is left, so that a read that must fail does so before its
	// first segment. The check starts at the part that was sent, so an address that wraps
	// is detected at once too.
	rest := uint64(r.read.Size - r.sent)
	from, f := s.table.Source(s.domain, s.id, r.read.Source, r.read.SourceTO+uint64(r.sent), rest)
	if f != NoFault {
		return h, nil, f
	}
	return h, from[:n], NoFault
}

// atomic changes the target and makes the response. Nothing but the processor itself comes
// between the load and the store: all atomics of a device are serialized with it (RFC 7306
// section 5.3).
func (q *requests) atomic(s *Stream, a *AtomicRequest) (h Header, payload []byte, f Fault) {
	h = Header{Op: AtomicResponseOp, Last: true, QN: QueueAtomic, MSN: q.answer}
	target, f := s.table.Target(s.domain, s.id, a.Target, a.TO)
	if f != NoFault {
		return h, nil, f
	}
	old := binary.NativeEndian.Uint64(target)
	value, _ := a.Apply(old) // deliver has accepted only known codes
	binary.NativeEndian.PutUint64(target, value)
	(&AtomicResponse{ID: a.ID, Original: old}).Put(q.result[:])
	q.answer++
	return h, q.result[:], NoFault
}

// refusal returns the Terminate for a fault of the oldest request. It makes the segment of
// the request again, which shows what was left to read (RFC 5040 section 4.8).
func (q *requests) refusal(f Fault) Terminate {
	r := q.pending.at(0)
	h := Header{Op: r.op, Last: true, QN: QueueRequest, MSN: r.number}
	var raw [UntaggedLen + ControlMax]byte
	n := h.Put(raw[:])
	if r.op == ReadRequestOp {
		left := r.read
		left.SinkTO += uint64(r.sent)
		left.SourceTO += uint64(r.sent)
		left.Size -= r.sent
		n += left.Put(raw[n:])
	} else {
		n += r.atomic.Put(raw[n:])
	}
	return TerminateFor(f, raw[:n], n)
}
