package udrel

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// A message is a work request, or a response to one of a peer. Several parties may
// still need it: package reliable until it is acked, the device below that reads its
// packets, and the peer whose response is awaited. The last one frees it.

type (
	message      = reliable.Message[posted]
	transmission = reliable.Transmission[posted]
)

// posted is what the device keeps about a message.
type posted struct {
	nextAccess     *message // next one that awaits a response of the same peer
	peer           *peer
	pair           *pair
	body           rdma.Mem
	kept           []byte // a copy of the body, or memory for one
	id             uint64 // of the work request
	target         target // of an access, or the source of a response
	slot           uint32 // its ID in requests to the device below
	got            int    // Read: bytes received
	below          int    // packets to be sent, or that the device below is reading
	kind           kind
	flags          uint8 // of its packets
	headLen        uint8
	status         rdma.Status
	op             rdma.Op
	silent         bool // only a failure makes a completion
	sending        bool // not fully acked
	awaitsResponse bool // the peer has not responded
	head           [longestHead]byte
}

// over reports whether nobody needs the message any more.
func (m *posted) over() bool { return !m.sending && !m.awaitsResponse && m.below == 0 }

const (
	// defaultAckEvery is how many packets share one ack (T1 6.6.1).
	defaultAckEvery = 50
	// ackDelay is how long an ack may wait for a packet to be piggybacked on.
	ackDelay = 200 * time.Microsecond
	// longAckDelay is the delay of an ack whose sender only needs it to free its copy.
	longAckDelay = 8 * time.Millisecond
	// delayAckMax is the longest message whose ack may be delayed so long.
	delayAckMax = 16 << 10
)

const (
	// longestFrame is the longest packet that a network may carry in one frame.
	longestFrame = 9000
	// hostWindow is the window for longer packets: they are for this host, and a
	// megabyte should be sent in one go.
	hostWindow = 1 << 20
)

// params returns the properties of the carrier. A packet has no more than a Head before
// the piece of the body.
func (c *Config) params() reliable.Params {
	p := reliable.Params{Single: c.Packet - rdma.HeadMax, MaxRun: 1, AckEvery: c.AckEvery, AckDelay: ackDelay, LongAckDelay: longAckDelay}
	if c.Packet > longestFrame {
		p.DelayFloor = hostWindow
	}
	return p
}

// messagePool keeps free messages. Some keep memory for a long body.
type messagePool struct {
	all        []*message // by slot
	free       []*message
	withBuffer []*message
}

const (
	maxInline = 16 << 10
	// shortCopy is the memory for a body that every message may keep.
	shortCopy     = 1 << 10
	maxWithBuffer = 128
)

// take returns a message with memory for a copy of room bytes.
func (s *messagePool) take(room int) *message {
	list := &s.free
	if room > shortCopy && len(s.withBuffer) > 0 || len(s.free) == 0 && len(s.withBuffer) > 0 {
		list = &s.withBuffer
	}
	var m *message
	if n := len(*list); n > 0 {
		m = (*list)[n-1]
		*list = (*list)[:n-1]
	} else {
		m = &message{Info: posted{slot: uint32(len(s.all))}}
		s.all = append(s.all, m)
	}
	if cap(m.Info.kept) < room {
		size := shortCopy
		if room > shortCopy {
			size = max(maxInline+rdma.HeadMax, room)
		}
		m.Info.kept = make([]byte, 0, size)
	}
	return m
}

// put returns a message to the pool.
func (s *messagePool) put(m *message) {
	kept := m.Info.kept[:0]
	if cap(kept) > shortCopy && len(s.withBuffer) >= maxWithBuffer {
		kept = nil
	}
	*m = message{Info: posted{slot: m.Info.slot, kept: kept}}
	if cap(kept) > shortCopy {
		s.withBuffer = append(s.withBuffer, m)
	} else {
		s.free = append(s.free, m)
	}
}
