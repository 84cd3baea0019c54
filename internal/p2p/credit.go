package p2p

// Credit bounds how much a receiver may have to hold of messages that it has not asked
// for. A sender starts with an amount of credit, spends it on every eager message, and
// gets it back when the receiver has consumed the message: consume counts, giveCredit
// returns it. A sender without credit uses a rendezvous, which needs no memory at the
// receiver, so no sender waits for credit and none of this can deadlock.
//
// With Config.Senders, the credit of all senders together is bounded, not that of each:
// P3 section 4 keeps a rank's memory at 5 to 10 MB for any number of ranks. All senders
// start with the same share of one half of the credit. The other half is a reserve. A
// sender whose messages are consumed gets more from the reserve, along with its returned
// credit, up to an equal share for each sender that has ever needed more. When another
// sender joins them, those that hold more than their share get back less than was
// consumed until they are down to it. A sender keeps its unused credit, because the
// receiver cannot predict whether it is about to use it.
//
// In a job of very many ranks the first share is too short for most messages. Their sender
// then uses a rendezvous, the RTS shows the receiver that it needs credit (needsCredit),
// and it gets some from the reserve.

const (
	// leastCredit is the least initial credit of a sender: one message of some bytes. The
	// receiver has to keep as much for an RTS, which needs no credit.
	leastCredit = eagerCharge + 64
	// creditStep is the least by which the credit of a sender grows, a few messages, where
	// the reserve permits.
	creditStep = 16 << 10
)

// linkCredit bounds the unexpected messages that a receiver must hold, in bytes of eager data
// that the peer has not consumed yet. At the limit a send uses a rendezvous, which needs no
// buffer, so it can neither block nor deadlock.
type linkCredit struct {
	credit   int64
	consumed int64 // receiver: consumed bytes not yet returned to the peer
	granted  int64 // receiver: the peer's total credit, including what is consumed or held here
	wants    bool  // receiver: the peer has needed more than the initial credit
}

// creditPool is the credit that the senders of a machine share.
type creditPool struct {
	first   int64 // initial credit of a sender
	extra   int64 // initial reserve
	reserve int64 // remaining reserve
	step    int64 // least growth
	busy    int64 // senders that have needed more
}

// newCreditPool divides the credit.
func newCreditPool(c *Config) creditPool {
	p := creditPool{first: c.Credit}
	if c.Senders > 0 {
		least := int64(leastCredit)
		p.step = creditStep
		if c.leastCredit > 0 {
			least, p.step = c.leastCredit, c.leastCredit
		}
		p.first = min(max(c.Credit/2/int64(c.Senders), least), c.Credit)
		p.extra = max(c.Credit-p.first*int64(c.Senders), c.Credit/2)
		p.reserve = p.extra
	}
	return p
}

// CreditUsed returns how much of the initial credit of a link its sender is using.
func (l *Link) CreditUsed(m *Machine) int64 { return max(m.creditPool.first-l.credit, 0) }

// consume counts eager bytes that the receiver no longer holds, and returns credit to
// the sender from time to time.
func (m *Machine) consume(l *Link, n int) {
	if l.consumed += int64(n) + eagerCharge; l.consumed >= l.granted>>2 {
		m.giveCredit(l)
	}
}

// giveCredit returns credit to a sender, adjusted towards its share.
func (m *Machine) giveCredit(l *Link) {
	if m.creditPool.extra > 0 {
		l.consumed += m.creditPool.change(&l.linkCredit, m.cfg.Credit)
	}
	if l.consumed > 0 {
		wr := m.packet(l)
		m.control(wr, l, kindCredit, 0, 0, uint64(l.consumed))
		l.consumed = 0
	}
}

// needsCredit gives credit to a sender that has announced a short message because all its
// credit together is too little for it.
func (m *Machine) needsCredit(l *Link, total int) {
	if m.creditPool.extra > 0 && total <= l.eagerMax && l.granted < int64(total)+eagerCharge {
		m.giveCredit(l)
	}
}

// change adjusts a sender's credit towards its share and returns the difference.
func (p *creditPool) change(l *linkCredit, most int64) (by int64) {
	if !l.wants {
		l.wants = true
		p.busy++
	}
	share := p.first + p.extra/p.busy
	switch {
	case l.granted < share:
		by = min(max(l.granted, p.step), share-l.granted, p.reserve, most-l.granted)
	case l.granted > share:
		by = -min(l.consumed, l.granted-share)
	}
	l.granted += by
	p.reserve -= by
	return by
}

// leave returns the credit of a failed peer beyond the initial amount to the reserve.
func (p *creditPool) leave(l *linkCredit) {
	if l.wants {
		l.wants = false
		p.busy--
		p.reserve += l.granted - p.first
		l.granted = p.first
	}
}
