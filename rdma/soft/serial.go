package soft

// Serial numbers. 32-bit numbers wrap: the sequence number of RD, also above UD
// (carrier.go), and the number of Write-Records. So an attacker could
// record a datagram and replay it 2^32 datagrams later, when its number is expected
// again. The serial number has 48 bits, is part of the nonce and is never reused
// (seal.go), so it reveals the replay. The extended sequence numbers of RFC 4303
// section 2.2.1 serve the same purpose.
//
// Each numbered datagram uses at least one serial number, and is not retransmitted once
// a window of later ones has been sent. So the number of a datagram less than maxLate
// behind the highest received one is less than half the number space behind, where its
// own number shows that it is a duplicate. At a million datagrams a second, maxLate is
// a quarter of an hour; no network delays for so long.

const (
	serialUnit = 16 // low bits of a serial number that are not kept
	maxLate    = 1 << (30 - serialUnit)
)

// serials is the highest serial number received from a peer, without its lowest bits.
type serials uint32

// late reports whether a datagram is too old to be still in flight.
func (s serials) late(serial uint64) bool {
	at := serials(serial >> serialUnit)
	return at < s && s-at >= maxLate
}

// fresh records a datagram whose tag is valid. It returns false if the datagram is
// late.
func (s *serials) fresh(serial uint64) bool {
	if s.late(serial) {
		return false
	}
	*s = max(*s, serials(serial>>serialUnit))
	return true
}
