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

// before reports whether p comes earlier than q.
func (p psn) before(q psn) bool { return int32(p-q) < 0 }

// Serial numbers. Numbers of 32 bits come round: the sequence number of RD, those that
// package udrel puts into UD messages, that of Write-Records. So somebody could record a
// datagram and send it again 2^32 datagrams later, when its number is due. The serial
// number has 48 bits, is in the nonce and is never used twice (seal.go), so it tells.
// This is what the extended sequence numbers of RFC 4303 section 2.2.1 are for.
//
// Each numbered datagram takes a serial number at least, and is not repeated once a window
// of later ones has left. So one that is less than maxLate behind the highest that was
// heard is less than half a round behind, where its own number tells that it came before.
// At a million datagrams a second maxLate is a quarter of an hour: no network delays for so long.

const (
	serialUnit = 16 // bits of a serial number that are not kept
	maxLate    = 1 << (30 - serialUnit)
)

// serials is the highest serial number that was heard from a peer, without its lowest bits.
type serials uint32

// late reports whether a datagram is too old to be still on its way.
func (s serials) late(serial uint64) bool {
	at := serials(serial >> serialUnit)
	return at < s && s-at >= maxLate
}

// fresh notes a datagram whose seal is right, and is false if it is late.
func (s *serials) fresh(serial uint64) bool {
	if s.late(serial) {
		return false
	}
	*s = max(*s, serials(serial>>serialUnit))
	return true
}
