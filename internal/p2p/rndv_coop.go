package p2p

// Cooperative rendezvous, for memory that both sides can copy: the sender offers
// its buffer as a region with a cursor, the receiver names its own, and from then
// on whoever is in the library copies the next piece. Two cores copy at once when
// both wait; one does it all when the other computes. The device sees the end on
// both sides, so there is no FIN.
//
//	sender                 receiver
//	register, RTS ────────▶ match
//	OpPush ══▶ pieces ◀════ OpPull

import "github.com/muster-mpi/muster/rdma"

type rndvCoop struct{}

func (rndvCoop) Name() string { return "rndv_coop" }

func (rndvCoop) Probe(k Key, l *Link) []Range {
	if !l.Attr.Ops.Has(rdma.OpPull) || (k.Rendezvous != "" && k.Rendezvous != "coop") {
		return nil
	}
	a := l.Attr
	cost := a.PullCost.Plus(a.RegCost).Plus(rdma.Cost{Fixed: a.SendCost.Of(headRTS)})
	return []Range{{1, MaxSize, cost}}
}

func (rndvCoop) Begin(m *Machine, x *Xfer) {
	if !m.register(x, x.Link, x.Buf, rdma.RemoteRead|rdma.Cooperative) {
		return
	}
	m.emitRTS(x, protoCoop)
	m.move(x, rdma.OpPush, x.Buf, 0, x.mr.RKey)
}

func (rndvCoop) Step(m *Machine, x *Xfer, ev Event) {
	switch ev.Kind {
	case EvMatched:
		n := min(x.total, len(x.Buf))
		x.stage = stageMove
		m.move(x, rdma.OpPull, x.Buf[:n], x.remote, x.rkey)
	case EvDone:
		m.release(x)
		if ev.Status != rdma.StatusOK {
			if !x.Send { // the owner cannot know
				m.emitFIN(x.Link, x.peer, 0, ev.Status)
			}
			m.fail(x, transportError(x, ev.Status))
			return
		}
		if x.Send {
			m.complete(x)
			return
		}
		m.received(x)
	case EvFIN: // only when the receiver could not copy
		m.release(x)
		m.fail(x, transportError(x, ev.Status))
	}
}

func (rndvCoop) Abort(m *Machine, x *Xfer) { m.release(x) }
