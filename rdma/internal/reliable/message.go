package reliable

import "time"

// Message is a queued message and its progress. Info belongs to the carrier.
type Message[T any] struct {
	Following *Message[T] // next message to the same peer
	Length    int         // total bytes
	Cut       int         // bytes segmented so far
	Overhead  int         // bytes of a segment with several packets that are not of the message
	DelayAck  bool        // nobody waits for its completion
	Yields    bool        // messages that do not yield may overtake it
	Info      T
}

// Transmission is what the carrier sends: a segment, or one packet of it.
type Transmission[T any] struct {
	Message  *Message[T]
	Offset   int // of the segment in the message
	Length   int // of the segment
	Sequence Sequence
	Number   Number // of the first packet
	Packets  int    // of the segment
	Position int    // of the packet in the segment, if Lone
	Lone     bool   // one packet of several is transmitted again
	Last     bool   // segment of its message
	Urgent   bool   // request an immediate ack
	DelayAck bool   // the ack may be delayed by Params.LongAckDelay
	Again    bool   // a retransmission, so the peer may already have it
	Ack      bool   // the segment has several packets, and room for the ack
	Kept     *Kept  // of a segment with several packets: for the carrier
}

// Kept is what the carrier needs to transmit packets of a segment again. It is the
// carrier's until the segment is finished.
type Kept struct {
	Bytes  [keptLen]byte
	Length int
}

const keptLen = 256

// segment is a segment in flight. It is never copied: its bytes are read from the
// user's memory, which belongs to the sender until the completion.
type segment[T any] struct {
	message *Message[T]
	kept    *Kept
	arrived uint64 // packets that an ack has reported, by position
	lost    uint64 // packets to transmit again
	offset  uint32
	length  uint32
	extra   uint16 // bytes that are not of the message
	packets uint8
	last    bool
	again   bool
}

// state is the state of a packet.
type state uint8

const (
	settled state = iota // an ack has reported it
	underWay
	lost
	doubtful // transmitted again after a timeout: the next acks show whether it was lost
)

// packet is a packet in flight on a path.
type packet struct {
	at       time.Duration // of the transmission
	sequence Sequence      // of its segment
	cost     uint32
	position uint8 // in its segment
	state    state
}
