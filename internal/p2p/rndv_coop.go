package p2p

// Cooperative rendezvous, for memory that both sides can copy: the sender offers
// its buffer as a region with a cursor, the receiver names its own, and from then
// on whoever is in the library copies the next piece. Two cores copy at once when
// both wait; one does it all when the other computes. The device sees the end on
// both sides, so there is no FIN, except for an empty message, for which there is
// no region, and when the receiver cannot copy.
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
	if len(x.Buf) == 0 {
		m.emitRTS(x, protoCoop, x.mr.Base, x.mr.RKey)
		return
	}
	if !m.register(x, x.Buf, rdma.RemoteRead|rdma.Cooperative, false) {
		return
	}
	m.emitRTS(x, protoCoop, x.mr.Base, x.mr.RKey)
	m.move(x, rdma.OpPush, x.Buf, 0, x.mr.RKey)
}

func (rndvCoop) Step(m *Machine, x *Xfer, ev Event) bool {
	switch {
	case ev.Kind == EvMatched:
		if x.total == 0 {
			m.emitFIN(x.Link, x.peer, 0, rdma.StatusOK)
			m.received(x)
			return true
		}
		// A receive without room pulls nothing, which ends the sender's push.
		n := min(x.total, len(x.Buf))
		if n > 0 && x.Link.Attr.LocalKeys && !m.register(x, x.Buf[:n], 0, true) {
			return true
		}
		x.stage = stageMove
		m.move(x, rdma.OpPull, x.Buf[:n], x.remote, x.rkey)
	case ev.Kind == EvDone && x.stage == stageMove:
		m.release(x)
		if ev.Status != rdma.StatusOK {
			m.emitFIN(x.Link, x.peer, 0, ev.Status) // the owner cannot know
			m.failed(x, ev.Status)
			return true
		}
		m.received(x)
	case ev.Kind == EvDone && x.stage == stageRTS:
		m.release(x)
		if ev.Status != rdma.StatusOK {
			m.failed(x, ev.Status)
			return true
		}
		m.complete(x)
	case ev.Kind == EvFIN && x.stage == stageRTS && (ev.Status != rdma.StatusOK || x.total == 0):
		m.release(x)
		if ev.Status != rdma.StatusOK {
			m.failed(x, ev.Status)
			return true
		}
		m.complete(x)
	default:
		return false
	}
	return true
}

func (rndvCoop) Abort(m *Machine, x *Xfer) { m.release(x) }
