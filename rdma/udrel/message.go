package udrel

import (
	"github.com/muster-mpi/muster/rdma"
)

// A message is a work request, or a response to one of a peer. Several parties may
// still need it: packets that are not acked, the device below that reads them, and the
// peer whose response is awaited. The last one frees it.

type message struct {
	following      *message // in its current list
	nextAccess     *message // next one that awaits a response of the same peer
	peer           *peer
	pair           *pair
	region         *region // source of a response
	body           rdma.Mem
	kept           []byte // a copy of the body, or memory for one
	id             uint64 // of the work request
	target         target
	slot           uint32 // its ID in requests to the device below
	cut            int    // bytes of the body segmented so far
	got            int    // Read: bytes received
	pieces         int    // packets not acked
	below          int    // packets that the device below is reading
	room           int    // bytes of the body per packet, besides the head
	kind           kind
	flags          uint8 // of its packets
	headLen        uint8
	status         rdma.Status
	op             rdma.Op
	silent         bool // only a failure makes a completion
	awaited        bool // the user waits for its completion
	whole          bool // fully segmented
	sending        bool // not fully acked
	awaitsResponse bool // the peer has not responded
	refused        bool // a response whose memory is gone, or was never allowed
	head           [longestHead]byte
}

func (m *message) length() int {
	if m.kind == kindRead {
		return 0 // the body is filled, not sent
	}
	return m.body.Len()
}

// pieceAt returns how much of the body goes into the packet that begins at a byte.
func (m *message) pieceAt(at int) int {
	room := m.room
	if at == 0 {
		room -= int(m.headLen)
	}
	return min(room, m.length()-at)
}

// over reports whether nobody needs the message any more.
func (m *message) over() bool { return !m.sending && !m.awaitsResponse && m.below == 0 }

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
		m = &message{slot: uint32(len(s.all))}
		s.all = append(s.all, m)
	}
	if cap(m.kept) < room {
		size := shortCopy
		if room > shortCopy {
			size = max(maxInline+rdma.HeadMax, room)
		}
		m.kept = make([]byte, 0, size)
	}
	return m
}

// put returns a message to the pool.
func (s *messagePool) put(m *message) {
	kept := m.kept[:0]
	if cap(kept) > shortCopy && len(s.withBuffer) >= maxWithBuffer {
		kept = nil
	}
	*m = message{slot: m.slot, kept: kept}
	if cap(kept) > shortCopy {
		s.withBuffer = append(s.withBuffer, m)
	} else {
		s.free = append(s.free, m)
	}
}
