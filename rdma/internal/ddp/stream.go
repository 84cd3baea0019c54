package ddp

import (
	"fmt"
	"math"

	"github.com/muster-mpi/muster/rdma"
)

// One stream: a connection, or one peer of a reliable datagram socket. The functions are
// in the order of doc.go: sending, receiving, responding, the end.

// MaxMessage is the longest message: RFC 5041 section 5.2.
const MaxMessage = 1<<32 - 1

// MaxTransfer returns the Attr.MaxTransfer of a device whose Config requests limit: a Read
// Request has 32 bits for its length (RFC 5040 section 4.4). 0 requests the maximum.
func MaxTransfer(limit int) (int, error) {
	switch {
	case limit == 0:
		return int(min(uint64(MaxMessage), math.MaxInt)), nil // an int may have 32 bits
	case limit < 0 || uint64(limit) > MaxMessage:
		return 0, fmt.Errorf("Config.MaxTransfer is %d; want 1 to %d, or 0 for the maximum", limit, uint32(MaxMessage))
	}
	return limit, nil
}

// Config configures a stream.
type Config struct {
	Table   *Table
	Domain  Domain
	ID      StreamID // not 0
	Buffers Buffers
	// Window is the number of receives that may be placed before the first of them is
	// delivered. 1 is enough where segments arrive in order. 0 means 1.
	Window int
	// Inbound and Outbound are the negotiated depths: how many reads and atomics the peer
	// may have outstanding here (IRD), and we there (ORD).
	Inbound, Outbound int
}

// Stream is the state of one stream.
type Stream struct {
	table     *Table
	domain    Domain
	id        StreamID
	sent      uint32 // the number of the next message on queue 0
	finished  bool   // a Terminate was made
	receives  receives
	requests  requests
	requester requester
}

// NewStream returns a stream whose numbers all begin with 1: RFC 5041 section 4.3.
func NewStream(c Config) *Stream {
	return &Stream{
		table: c.Table, domain: c.Domain, id: c.ID, sent: 1,
		receives:  receives{from: c.Buffers, next: 1, taken: newRing[rdma.RecvWR](max(c.Window, 1))},
		requests:  requests{next: 1, answer: 1, pending: newRing[request](c.Inbound)},
		requester: requester{next: 1, answer: 1, open: newRing[outstanding](c.Outbound)},
	}
}

// Send numbers a message for queue 0: a Send of any kind, with the tag to invalidate if it
// has one, or Immediate Data.
func (s *Stream) Send(op Opcode, n uint32, invalidate Tag) Message {
	s.sent++
	return Message{Header{Op: op, Tag: invalidate, QN: QueueSend, MSN: s.sent - 1}, n}
}

// Write returns a message that writes to the peer's memory. It has no number.
func (s *Stream) Write(tag Tag, to uint64, n uint32) Message {
	return Message{Header{Op: Write, Tag: tag, TO: to}, n}
}

// Placement returns the memory for the bytes [off, off+n) of the payload of a segment. It
// is nil for no bytes and for an RDMAP header. FaultNoBuffer changes no state: the device
// may end the stream, or let the peer wait and call Placement again.
func (s *Stream) Placement(h *Header, off, n int) ([]byte, Fault) {
	switch {
	case h.Op == Write && n == 0: // RFC 5041 section 5.2: tag and address are not checked
		return nil, NoFault
	case h.Op == Write:
		to := h.TO + uint64(off)
		if to < h.TO {
			return nil, FaultTagWrap
		}
		return s.table.Placement(s.domain, s.id, h.Tag, to, uint64(n))
	case h.Op == ReadResponse:
		return s.requester.placement(h, off, n)
	case h.Op.Control():
		return nil, NoFault
	}
	return s.receives.placement(h, off, n)
}

// EventKind is the kind of an Event.
type EventKind uint8

const (
	Nothing    EventKind = iota // more is to come, or a Write, which is never reported
	Received                    // a message is complete
	Fetched                     // a read or an atomic of ours is complete
	Requested                   // the peer waits for a response: see Respond
	Terminated                  // the peer has ended the stream, because of Event.Fault
)

// Event is the result of a delivered segment.
type Event struct {
	Kind        EventKind
	Op          Opcode
	Fault       Fault       // Terminated: the fault that the peer reports
	Recv        rdma.RecvWR // Received: the buffer
	Invalidated Tag         // Received: the tag that it invalidated, or 0
	ID          uint64      // Fetched: as passed to Read or Fetch
	Len         uint32      // Received, Fetched: bytes
	Original    uint64      // Fetched, an atomic: the value before
}

// Deliver handles a segment with n bytes of payload that were placed, or are in body if it
// is an RDMAP header. It is called once for each segment and in order, and fills in the
// event.
func (s *Stream) Deliver(h *Header, n int, body []byte, e *Event) (f Fault) {
	*e = Event{Op: h.Op}
	switch h.Op {
	case Write:
		return NoFault
	case ReadResponse:
		done, f := s.requester.deliverRead(h, n)
		if done && f == NoFault {
			e.Kind = Fetched
			e.ID, e.Len = s.requester.finish()
		}
		return f
	case AtomicResponseOp:
		if e.Original, f = s.requester.deliverAtomic(h, body); f == NoFault {
			e.Kind = Fetched
			e.ID, _ = s.requester.finish()
			e.Len = 8
		}
		return f
	case ReadRequestOp, AtomicRequestOp:
		e.Kind = Requested
		return s.requests.deliver(h, body)
	case TerminateOp:
		return s.deliverTerminate(h, body, e)
	}
	return s.deliverReceive(h, n, e)
}

func (s *Stream) deliverReceive(h *Header, n int, e *Event) Fault {
	if f := s.receives.deliver(h, n); f != NoFault || !h.Last {
		return f
	}
	if h.Op.Invalidates() {
		if f := s.table.Invalidate(s.domain, s.id, h.Tag); f != NoFault {
			return f
		}
		e.Invalidated = h.Tag
	}
	e.Kind = Received
	e.Recv, e.Len = s.receives.finish()
	return NoFault
}

func (s *Stream) deliverTerminate(h *Header, body []byte, e *Event) Fault {
	var t Terminate
	if h.MSN != 1 { // RFC 5040 section 5.4: there is only one
		return FaultMSN
	}
	if !t.Decode(body) {
		return FaultUnspecified
	}
	e.Kind, e.Fault = Terminated, t.Fault
	return NoFault
}

// ResponsesPending reports whether the peer waits for a response.
func (s *Stream) ResponsesPending() bool { return s.requests.pending.n != 0 }

// Respond makes the next segment of the pending responses, with at most room bytes of
// payload and room for an atomic response. The payload is the source itself, or memory of
// the stream, until the next call: the device sends or copies it before it releases its
// lock.
func (s *Stream) Respond(room int) (Header, []byte, Fault) {
	return s.requests.respond(s, room)
}

// Terminate makes the message that ends the stream because of a fault, caused by the
// segment that begins with raw and has size bytes. It returns false if one was made
// before: there is only one, and nothing follows it (RFC 5040 section 5.4).
func (s *Stream) Terminate(f Fault, raw []byte, size int) (m Message, t Terminate, ok bool) {
	return s.end(TerminateFor(f, raw, size))
}

// Refuse is Terminate for a fault that Respond returned: the request caused it.
func (s *Stream) Refuse(f Fault) (m Message, t Terminate, ok bool) {
	return s.end(s.requests.refusal(f))
}

func (s *Stream) end(t Terminate) (Message, Terminate, bool) {
	if s.finished {
		return Message{}, Terminate{}, false
	}
	s.finished = true
	return Message{Header{Op: TerminateOp, QN: QueueTerminate, MSN: 1}, uint32(t.Len())}, t, true
}

// Flush ends all outstanding operations: it passes the taken buffers to received and the
// IDs of unanswered reads and atomics to fetching, each in order.
func (s *Stream) Flush(received func(rdma.RecvWR), fetching func(id uint64, atomic bool)) {
	for ; s.receives.taken.n != 0; s.receives.taken.pop() {
		received(*s.receives.taken.at(0))
	}
	for ; s.requester.open.n != 0; s.requester.open.pop() {
		fetching(s.requester.open.at(0).id, s.requester.open.at(0).atomic)
	}
	for s.requests.pending.n != 0 {
		s.requests.pending.pop()
	}
}
