package dgram

// Sequence numbers. Every RD datagram that carries a segment has one, counted
// for each pair of queue pairs and direction from 0. They wrap, so they are compared
// by their distance (RFC 1982 section 3.2): that is sound while all numbers under
// way lie in a window far smaller than half the circle.

// psn is the sequence number of a datagram.
type psn uint32

// window is how many sequence numbers may be under way: a receiver remembers so
// many datagrams beyond the first one that is missing.
const window = 256

// before tells whether p comes earlier than q.
func (p psn) before(q psn) bool { return int32(p-q) < 0 }
