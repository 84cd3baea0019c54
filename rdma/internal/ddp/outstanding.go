package ddp

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Queue 1, at the requester: the outstanding reads and atomics, and the destinations of
// their responses. The sink of a read has its own tag that is in no table: no Write and no
// other stream can use it, and it ends with the read (RFC 5042 section 6.2.1 and 6.3.5).
// Responses arrive in the order of the requests.

// outstanding is one outstanding request.
type outstanding struct {
	id     uint64 // the user's
	sink   rdma.Mem
	tag    Tag // of the sink; 0 for an atomic
	number uint32
	got    uint32 // bytes delivered
	atomic bool
}

// requester is the requester's state.
type requester struct {
	next   uint32 // the number of the next request
	answer uint32 // the number of the next atomic response
	open   ring[outstanding]
}

func (a *requester) number() uint32 {
	a.next++
	return a.next - 1
}

// Read requests the peer's memory at a tag and address, to fill sink; the Event carries
// id. The message's payload is the request. rdma.ErrAgain means that the negotiated number
// of requests is outstanding.
func (s *Stream) Read(id uint64, sink rdma.Mem, source Tag, to uint64) (Message, ReadRequest, error) {
	if s.requester.open.full() {
		return Message{}, ReadRequest{}, rdma.ErrAgain
	}
	if uint64(sink.Len()) > MaxMessage {
		return Message{}, ReadRequest{}, fmt.Errorf("ddp: a read of %d bytes is longer than a message may be (%d); split it", sink.Len(), uint32(MaxMessage))
	}
	tag, err := s.table.Draw()
	if err != nil {
		return Message{}, ReadRequest{}, err
	}
	m := s.outstanding(ReadRequestOp, ReadRequestLen, outstanding{id: id, sink: sink, tag: tag})
	return m, ReadRequest{Sink: tag, Size: uint32(sink.Len()), Source: source, SourceTO: to}, nil
}

// Fetch requests an atomic. It fills in the ID of the request, and sets the fields that a
// FetchAdd does not use as RFC 7306 section 5.2.1 requires.
func (s *Stream) Fetch(id uint64, r AtomicRequest) (Message, AtomicRequest, error) {
	if s.requester.open.full() {
		return Message{}, AtomicRequest{}, rdma.ErrAgain
	}
	m := s.outstanding(AtomicRequestOp, AtomicRequestLen, outstanding{id: id, atomic: true})
	r.ID = m.MSN
	if r.Code == FetchAdd {
		r.Compare, r.CompareMask = 0, 1<<64-1
	}
	return m, r, nil
}

func (s *Stream) outstanding(op Opcode, length uint32, one outstanding) Message {
	one.number = s.requester.number()
	*s.requester.open.push() = one
	return Message{Header{Op: op, QN: QueueRequest, MSN: one.number}, length}
}

// placement returns the memory for the bytes [off, off+n) of a Read Response. It searches
// the tag among all outstanding requests, because datagrams may overtake each other.
func (a *requester) placement(h *Header, off, n int) ([]byte, Fault) {
	if n == 0 {
		return nil, NoFault
	}
	for i := range a.open.n {
		one := a.open.at(i)
		if one.atomic || one.tag != h.Tag {
			continue
		}
		lo, size := h.TO+uint64(off), uint64(one.sink.Len())
		switch {
		case lo < h.TO || lo+uint64(n) < lo:
			return nil, FaultTagWrap
		case lo+uint64(n) > size:
			return nil, FaultTagBounds
		}
		return one.sink.Bytes()[lo : lo+uint64(n) : lo+uint64(n)], NoFault
	}
	return nil, FaultTag
}

// deliverRead counts a piece of the oldest read and reports whether it is complete. The
// tag and address of an empty response are ignored (RFC 5041 section 5.2).
func (a *requester) deliverRead(h *Header, n int) (done bool, f Fault) {
	if a.open.n == 0 || a.open.at(0).atomic {
		return false, FaultOpcode
	}
	one := a.open.at(0)
	size := uint32(one.sink.Len())
	switch {
	case n == 0 && (size != 0 || !h.Last):
		return false, FaultUnspecified
	case n != 0 && h.Tag != one.tag:
		return false, FaultTag
	case n != 0 && (h.TO != uint64(one.got) || uint64(n) > uint64(size-one.got)):
		return false, FaultTagBounds
	}
	one.got += uint32(n)
	if h.Last != (one.got == size) {
		return false, FaultUnspecified
	}
	return h.Last, NoFault
}

// deliverAtomic checks that a response is to the oldest request.
func (a *requester) deliverAtomic(h *Header, body []byte) (original uint64, f Fault) {
	if h.MSN != a.answer {
		return 0, FaultMSN
	}
	if a.open.n == 0 || !a.open.at(0).atomic {
		return 0, FaultOpcode
	}
	var r AtomicResponse
	if !r.Decode(body) || r.ID != a.open.at(0).number {
		return 0, FaultUnspecified
	}
	a.answer++
	return r.Original, NoFault
}

// finish ends the oldest request and returns the user's ID of it.
func (a *requester) finish() (id uint64, n uint32) {
	one := a.open.at(0)
	id, n = one.id, one.got
	a.open.pop()
	return id, n
}
