package p2p

// The programs that the explorer runs: the operations of each rank, in order. A program ends
// with a wait for all of them.

import (
	"fmt"
	"strings"
)

const (
	maxRanks = 3
	maxOps   = 4 // of one rank
)

// The sizes of messages, around the thresholds of the explorer's configuration:
// segments of 4 bytes, eager up to 8.
const (
	sizeEmpty   = 0
	sizeShort   = 3  // one packet
	sizeSegment = 8  // two packets
	sizeLong    = 12 // rendezvous
	roomFull    = sizeLong
)

// progOp is one operation.
type progOp struct {
	send  bool
	peer  int8 // destination, or source, or AnySource
	tag   int8 // or AnyTag
	size  int8 // bytes to send, or room to receive
	sync  bool // a synchronous send
	block bool // the rank continues only when the operation has completed

	cancel bool // a receive that is cancelled at some time, if it has not completed
}

type program [][]progOp

// message returns the number of the message that operation i of a rank sends.
func message(rank, i int) int { return rank*maxOps + i }

// payload returns byte k of a message, which identifies the message.
func payload(msg, k int) byte { return byte(1 + msg*16 + k) }

// messageOf returns the message that a byte of data belongs to.
func messageOf(b byte) int { return int(b-1) / 16 }

// fits reports whether a receive accepts a message, by envelope.
func (p program) fits(rank, i, msg int) bool {
	r, from := p[rank][i], msg/maxOps
	s := p[from][msg%maxOps]
	return !r.send && s.send && int(s.peer) == rank &&
		(r.peer == AnySource || int(r.peer) == from) && (r.tag == AnyTag || r.tag == s.tag)
}

// cancels reports whether receives of the program are cancelled. Then messages and
// receives may be left over.
func (p program) cancels() bool {
	for _, ops := range p {
		for _, op := range ops {
			if op.cancel {
				return true
			}
		}
	}
	return false
}

func (o progOp) String() string {
	var s strings.Builder
	name, dir := "recv", "from"
	if o.send {
		name, dir = "send", "to"
	}
	if o.sync {
		name = "ssend"
	}
	if !o.block {
		name = "i" + name
	}
	if o.cancel {
		name = "cancelled " + name
	}
	any := func(v int8) string {
		if v < 0 {
			return "any"
		}
		return fmt.Sprint(v)
	}
	fmt.Fprintf(&s, "%s %s %s tag %s len %d", name, dir, any(o.peer), any(o.tag), o.size)
	return s.String()
}

func (p program) String() string {
	var s strings.Builder
	for r, ops := range p {
		fmt.Fprintf(&s, "  rank %d:", r)
		for _, o := range ops {
			fmt.Fprintf(&s, " %s;", o)
		}
		s.WriteString("\n")
	}
	return s.String()
}
