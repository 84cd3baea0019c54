package udrel

import "time"

// Sequence numbers and times on the wire: both wrap and are compared by their distance.

// psn numbers the packets to a peer, from 0.
type psn uint32

// before reports whether a was assigned before b.
func (a psn) before(b psn) bool { return int32(a-b) < 0 }

// window is how many packets may be in flight to a peer.
const window = 128

// receiveHistory records packets received out of order: bit i is the one i after the
// next in order.
type receiveHistory [window / 64]uint64

func (s *receiveHistory) has(i psn) bool { return s[i/64]>>(i%64)&1 != 0 }

func (s *receiveHistory) set(i psn) { s[i/64] |= 1 << (i % 64) }

// shift drops the first bit.
func (s *receiveHistory) shift() {
	for i := range s {
		s[i] >>= 1
		if i+1 < len(s) {
			s[i] |= s[i+1] << 63
		}
	}
}

// stamp is a time in microseconds, which wraps after 71 minutes.
type stamp uint32

func stampOf(t time.Duration) stamp { return stamp(t / time.Microsecond) }

// since returns the time from an earlier stamp.
func (s stamp) since(earlier stamp) time.Duration {
	return time.Duration(int32(s-earlier)) * time.Microsecond
}

const never = time.Duration(1<<63 - 1)
