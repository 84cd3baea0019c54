package p2p

import "github.com/muster-mpi/muster/internal/direct"

// Direct stores pointers to the machine's words for the C front.
func (m *Machine) Direct(t *direct.Engine, pins *direct.Pins) {
	pins.Pin(m, m.sizes)
	t.Operations, t.FreeOperations = direct.Length(&m.slab), direct.Length(&m.free)
	t.Unexpected = &m.match.waiting
	t.Sizes = direct.Count(&m.sizes[protoEager])
}

// Direct stores pointers to the link's words for the C front, which records the envelopes of
// its messages from then on. It returns false if short messages take another path than
// SendOne and HandlePacket.
func (l *Link) Direct(t *direct.Peer, pins *direct.Pins) bool {
	if l.oneMax < 0 || l.in != nil || l.out != nil || l.Sourced(l.oneMax) {
		return false
	}
	if l.recent == nil {
		l.recent = &recent{since: l.Stats.Sent}
	}
	pins.Pin(l, l.recent)
	t.SendSeq, t.RecvSeq = &l.sendSeq, &l.recvSeq
	t.Credit, t.Consumed, t.Granted = &l.credit, &l.consumed, &l.granted
	t.OneMax, t.Open = &l.oneMax, &l.Open
	t.Wait, t.Held, t.Recent = direct.Length(&l.Wait), direct.Length(&l.held), &l.recent.keys[0]
	s := &l.Stats
	t.Sent, t.Received = &s.Sent, &s.Received
	t.BytesSent, t.BytesReceived = &s.BytesSent, &s.BytesRx
	t.Eager = &s.ByProtocol[protoEager]
	return true
}

// DirectConstants returns the numbers of the wire format and of flow control that the C front
// uses.
func DirectConstants() map[string]int64 {
	return map[string]int64{"HEAD": headLen, "EAGER": int64(kindEager), "EAGER_CHARGE": eagerCharge, "RECENT_LEN": recentLen}
}
