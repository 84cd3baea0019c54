package p2p

// Grants. If many ranks send to one at a time, they send more than its port delivers, the
// queue of the switch overflows, and all of them retransmit (incast). A rank that has been
// told of a message by an RTS decides when its data is sent: it starts as many of the
// transfers as its port delivers within a few milliseconds, and each that ends starts the
// next ones, in the order in which they were matched.
//
// Deadlock freedom (doc.go): a transfer that waits is matched, and so are those that it waits
// for, which complete by progress alone.

import "slices"

// Grants limits the bytes that are under way to a group of receives.
type Grants struct {
	Limit   int
	bytes   int
	count   int
	waiting []*Xfer // matched receives whose transfers have not started
}

// grantShare is the part of a receive in its grants.
type grantShare struct {
	Grants  *Grants // delays the transfer of a receive that was announced; nil: nothing does
	granted bool    // its transfer is counted
}

// leastGrants is how many transfers may be under way, however long they are: while one of
// them ends, the port is busy with the other.
const leastGrants = 2

func (g *Grants) permits(n int) bool { return g.count < leastGrants || g.bytes+n <= g.Limit }

// start counts the transfer of a matched receive. False: it must wait for others to end.
func (g *Grants) start(x *Xfer) bool {
	n := min(x.total, len(x.Buf))
	switch {
	case g == nil || x.granted:
		return true
	case !g.permits(n):
		g.waiting = append(g.waiting, x)
		return false
	}
	g.bytes, g.count, x.granted = g.bytes+n, g.count+1, true
	return true
}

// endGrant ends the transfer of a receive, or its wait for one, and starts the next ones.
func (m *Machine) endGrant(x *Xfer) {
	g := x.Grants
	if g == nil {
		return
	}
	if i := slices.Index(g.waiting, x); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	if !x.granted {
		return
	}
	g.bytes, g.count, x.granted = g.bytes-min(x.total, len(x.Buf)), g.count-1, false
	for len(g.waiting) > 0 {
		next := g.waiting[0]
		if !g.permits(min(next.total, len(next.Buf))) {
			return
		}
		g.waiting = slices.Delete(g.waiting, 0, 1)
		m.advance(next, Event{Kind: EvMatched})
	}
}
