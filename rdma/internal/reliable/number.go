package reliable

import (
	"math"
	"time"
)

// Sequences and numbers wrap, so they are compared by their distance (RFC 1982 section
// 3.2). That is sound because all in flight lie in a window far smaller than half the
// number space.

// Sequence is the number of a segment, counted from 0 for each peer and direction.
type Sequence uint32

// Before reports whether s comes earlier than t.
func (s Sequence) Before(t Sequence) bool { return int32(s-t) < 0 }

// Number is the number of a packet, counted from 0 for each path and direction.
type Number uint32

// Before reports whether n comes earlier than m.
func (n Number) Before(m Number) bool { return int32(n-m) < 0 }

const (
	// Window is how many segments may be in flight to a peer: a receiver keeps that
	// many beyond the first missing one.
	Window = 256
	// packetWindow is how many packets may be in flight on a path: an ack can report
	// that many.
	packetWindow = 1024
	// MaxRun is the maximum number of packets of a segment.
	MaxRun = 64
)

// Never is a time that is not reached.
const Never = time.Duration(math.MaxInt64)

// stamp is a time in 32 bits of microseconds.
type stamp uint32

func stampOf(now time.Duration) stamp { return stamp(now / time.Microsecond) }

// timeNear returns the time of a stamp that is less than half an hour from now.
func (t stamp) timeNear(now time.Duration) time.Duration {
	return now + time.Duration(int32(t-stampOf(now)))*time.Microsecond
}

// age returns the time from the stamp to now. The result is meaningless beyond an
// hour.
func (t stamp) age(now time.Duration) time.Duration {
	return time.Duration(stampOf(now)-t) * time.Microsecond
}
