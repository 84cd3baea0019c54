package p2p

// Operations that fail: because a peer has failed, because it violates the protocol,
// because a work request failed, or because the job has failed. The protocol's Abort
// releases an operation's resources.

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Fail ends all pending operations: the job has failed.
func (m *Machine) Fail(err error) { m.failAll(nil, err) }

// FailLink ends all pending and later operations with one peer. Messages that have arrived
// completely can still be received; others are dropped. Receives from any source continue
// to wait for other peers.
func (m *Machine) FailLink(l *Link, err error) {
	l.fail(err)
	m.creditPool.leave(&l.linkCredit)
	m.failAll(l, err)
	for g := m.match.arrived.head; g != nil; {
		next := g.nodes[listArrived].next
		if g.Link == l && !g.whole() {
			m.match.takeMsg(g)
			m.putMsg(g)
		}
		g = next
	}
	l.held, l.partial, l.offers = nil, nil, nil
}

// FailAny ends the receives of a context that wait for any source, except those of the
// engine itself: the sender may be a rank that has failed.
func (m *Machine) FailAny(ctx uint32, err error) {
	for _, x := range m.slab {
		if x.stage == stagePosted && x.Ctx == ctx && x.Source == AnySource && (x.Owner == nil || x.Owner.Whole == nil) {
			m.fail(x, err)
		}
	}
}

// UnderWay reports whether an operation of a context is under way.
func (m *Machine) UnderWay(of func(ctx uint32) bool) bool {
	for _, x := range m.slab {
		if x.stage != stageIdle && x.stage != stageDone && of(x.Ctx) {
			return true
		}
	}
	return false
}

func (m *Machine) failAll(l *Link, err error) {
	for _, x := range m.slab {
		if x.stage != stageIdle && x.stage != stageDone && (l == nil || x.Link == l) {
			m.fail(x, err)
		}
	}
}

// fail ends one operation with an error.
func (m *Machine) fail(x *Xfer, err error) {
	if m.observe != nil {
		m.observe(x, Event{Kind: evFailed})
	}
	switch x.stage {
	case stagePosted, stageReady, stageCancelling:
		m.unpost(x, offerDropped)
	case stageMatched:
		m.unstarve(x)
	case stagePartial:
		for i := range x.Link.partial {
			if x.Link.partial[i].x == x {
				x.Link.partial[i].x = nil
			}
		}
	}
	protocols[x.proto].Abort(m, x)
	x.Err, x.cut = err, nil
	m.complete(x)
}

// failPeer fails a peer that violates the protocol.
func (m *Machine) failPeer(l *Link, why string) {
	m.FailLink(l, fmt.Errorf("%w: rank %d on %s: %s", ErrProtocol, l.Rank, l.Host, why))
}

// failTransfer ends an operation whose data could not be transferred.
func (m *Machine) failTransfer(x *Xfer, s rdma.Status) {
	m.fail(x, fmt.Errorf("%w: %s with rank %d on %s: %s",
		ErrTransport, protocolName(x.proto), x.Link.Rank, x.Link.Host, s))
}
