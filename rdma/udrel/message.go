package udrel

import (
	"github.com/muster-mpi/muster/rdma"
)

// A message is what a work request becomes, or an answer to one of a peer's. Several may
// still need it: the packets that have not come, the device below, which reads them, and
// the peer, whose answer is awaited. The last one lets go of it.

type message struct {
	following      *message // in the list it is in
	nextAccess     *message // the next that awaits an answer of the same peer
	peer           *peer
	pair           *pair
	region         *region // whose memory an answer shows
	body           rdma.Mem
	kept           []byte // a copy of the body, or room for one
	id             uint64 // of the work request
	target         target
	slot           uint32 // by which the device below knows it
	cut            int    // bytes of the body that packets carry
	got            int    // a Read: bytes that have come
	pieces         int    // packets that have not come
	below          int    // packets that the device below is reading
	room           int    // bytes of the body that a packet has room for, beside the head
	kind           kind
	flags          uint8 // of its packets
	headLen        uint8
	status         rdma.Status
	op             rdma.Op
	silent         bool // only a failure is told
	awaited        bool // somebody waits for its ack
	whole          bool // is all cut
	sending        bool // not all of it has come
	awaitsResponse bool // the peer has not answered
	refused        bool // an answer whose memory is gone, or was never allowed
	head           [longestHead]byte
}

func (m *message) length() int {
	if m.kind == kindRead {
		return 0 // the body is filled, not sent
	}
	return m.body.Len()
}

// pieceAt is how much of the body goes into the packet that begins at a byte.
func (m *message) pieceAt(at int) int {
	room := m.room
	if at == 0 {
		room -= int(m.headLen)
	}
	return min(room, m.length()-at)
}

// over reports whether nobody needs the message any more.
func (m *message) over() bool { return !m.sending && !m.awaitsResponse && m.below == 0 }

// shelf keeps messages that are free. Some of them keep the room for a long body.
type messagePool struct {
	all        []*message // by slot
	free       []*message
	withBuffer []*message
}

const (
	maxInline = 16 << 10
	// shortCopy is the room for a body that every message may keep.
	shortCopy     = 1 << 10
	maxWithBuffer = 128
)

// take gives a message with room for a copy of so many bytes.
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

// put takes a message back.
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
