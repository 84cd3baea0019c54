package p2p

import "github.com/muster-mpi/muster/internal/direct"

// Direct stores the addresses of the machine's words for the C front.
func (m *Machine) Direct(t *direct.Engine) {
	t.Operations, t.FreeOperations = direct.Length(&m.slab), direct.Length(&m.free)
	t.Unexpected = direct.Address(&m.match.waiting)
	t.Sizes = direct.Address(&m.sizes[protoEager])
}

// Direct stores the addresses of the link's words for the C front. It returns false if short
// messages take another path than SendOne and Arrived.
func (l *Link) Direct(t *direct.Peer) bool {
	if l.oneMax < 0 || l.in != nil || l.out != nil || l.Sourced(l.oneMax) {
		return false
	}
	t.SendSeq, t.RecvSeq = direct.Address(&l.sendSeq), direct.Address(&l.recvSeq)
	t.Credit, t.Consumed, t.Granted = direct.Address(&l.credit), direct.Address(&l.consumed), direct.Address(&l.granted)
	t.OneMax, t.Open = direct.Address(&l.oneMax), direct.Address(&l.Open)
	t.Wait, t.Held, t.Recent = direct.Length(&l.Wait), direct.Length(&l.held), direct.Address(&l.recent)
	s := &l.Stats
	t.Sent, t.Received = direct.Address(&s.Sent), direct.Address(&s.Received)
	t.BytesSent, t.BytesReceived = direct.Address(&s.BytesSent), direct.Address(&s.BytesRx)
	t.Eager = direct.Address(&s.ByProtocol[protoEager])
	return true
}
