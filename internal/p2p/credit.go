package p2p

// Credit: how much a receiver may have to hold of messages that it has not asked for. A
// sender has so much of it, pays for every eager message, and gets it back when the
// receiver has consumed the message: consume counts, giveCredit tells. A sender without
// credit asks first, by a rendezvous, which needs no memory at the receiver, so that
// nobody waits for credit and none of this can deadlock.
//
// With Config.Senders, the credit of all senders together is bounded, and not that of each:
// P3 section 4 holds a rank's memory at 5 to 10 MB, whatever the number of ranks. All senders
// begin with the same, half of it in all. The other half is a pot. A sender whose messages
// are consumed gets more from it with what it gets back, up to an equal share for each
// that has ever wanted more. When another one joins them, those who have more than their
// share get back less than was consumed, until they have not. What a sender does not use
// blocking with it, because nobody can know whether it is about to.

// leastCredit is what a sender has at first, however many there are: a few messages.
const leastCredit = 16 << 10

// creditPool is what the senders of a machine share.
type creditPool struct {
	first   int64 // that a sender has in the beginning
	extra   int64 // what there was in the pot
	reserve int64 // what is left in it
	busy    int64 // senders that have wanted more
}

// newCreditPool divides the credit.
func newCreditPool(c *Config) creditPool {
	p := creditPool{first: c.Credit}
	if c.Senders > 0 {
		least := int64(leastCredit)
		if c.leastCredit > 0 {
			least = c.leastCredit
		}
		p.first = min(max(c.Credit/2/int64(c.Senders), least), c.Credit)
		p.extra = max(c.Credit-p.first*int64(c.Senders), 0)
		p.reserve = p.extra
	}
	return p
}

// consume counts eager bytes that have left the receiver's keeping, and tells
// the sender now and then.
func (m *Machine) consume(l *Link, n int) {
	if l.consumed += int64(n) + eagerCharge; l.consumed >= l.granted>>2 {
		m.giveCredit(l)
	}
}

// giveCredit gives credit back, more or less of it than was used.
func (m *Machine) giveCredit(l *Link) {
	if m.creditPool.extra > 0 {
		l.consumed += m.creditPool.change(l, m.cfg.Credit)
	}
	if l.consumed > 0 {
		wr := m.packet(l)
		m.control(wr, l, kindCredit, 0, 0, uint64(l.consumed))
		l.consumed = 0
	}
}

// change moves a sender's credit towards its share, and tells by how much.
func (p *creditPool) change(l *Link, most int64) (by int64) {
	if !l.wants {
		l.wants = true
		p.busy++
	}
	share := p.first + p.extra/p.busy
	switch {
	case l.granted < share:
		by = min(l.granted, share-l.granted, p.reserve, most-l.granted)
	case l.granted > share:
		by = -min(l.consumed, l.granted-share)
	}
	l.granted += by
	p.reserve -= by
	return by
}

// leave puts what a peer that is gone had beyond the first back into the pot.
func (p *creditPool) leave(l *Link) {
	if l.wants {
		l.wants = false
		p.busy--
		p.reserve += l.granted - p.first
		l.granted = p.first
	}
}
