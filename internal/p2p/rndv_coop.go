package p2p

// Cooperative rendezvous, for memory that both sides can copy. The sender offers its
// buffer as a region with a cursor, the receiver names its own, and from then on either
// side copies the next piece when it polls. Two cores copy at once when both sides wait;
// one copies everything when the other computes. The device reports the completion on
// both sides, so there is no FIN, except for an empty message, which has no region, and
// when the receiver cannot copy.
//
//	sender                 receiver
//	register, RTS ────────▶ match
//	OpPush ══▶ pieces ◀════ OpPull
//
// The OpPush is posted before the receiver has matched, and so waits for the peer's
// application. It is the only work request that does (doc.go). The device has room for
// Attr.MaxPush of them; a send beyond that uses another rendezvous, which posts nothing
// before the match.

import "github.com/muster-mpi/muster/rdma"

type rndvCoop struct{}

func (rndvCoop) Probe(k Key, l *Link) []Range {
	if !l.Attr.Ops.Has(rdma.OpPull) {
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
	if d := x.Link.device; d.pushes >= d.attr.MaxPush {
		x.proto = d.withoutPush()
		protocols[x.proto].Begin(m, x)
		return
	}
	if !m.expose(x, rdma.RemoteRead|rdma.Cooperative) {
		return
	}
	m.emitRTS(x, protoCoop, x.mr.Base, x.mr.RKey)
	m.transfer(x, rdma.OpPush, x.Buf, 0, x.mr.RKey)
	x.pushed = true
	x.Link.device.pushes++
}

// withoutPush returns the protocol for a send that finds too many OpPush pending.
func (d *device) withoutPush() uint8 {
	switch {
	case d.attr.Ops.Has(rdma.OpRead):
		return protoGet
	case d.attr.Ops.Has(rdma.OpWrite):
		return protoPut
	}
	return protoEager // as in chooseRendezvous
}

func (rndvCoop) Step(m *Machine, x *Xfer, ev Event) bool {
	switch {
	case ev.Kind == EvMatched:
		if x.total == 0 {
			m.emitFIN(x.Link, x.peer, 0, rdma.StatusOK)
			m.finishRecv(x)
			return true
		}
		// A receive with an empty buffer pulls nothing, which ends the sender's push.
		n := min(x.total, len(x.Buf))
		if n > 0 && x.Link.Attr.LocalKeys && !m.register(x, x.Buf[:n], 0, true) {
			return true
		}
		x.stage = stageTransfer
		m.transfer(x, rdma.OpPull, x.Buf[:n], x.remote, x.rkey)
	case ev.Kind == EvDone && x.stage == stageTransfer:
		m.release(x)
		if ev.Status != rdma.StatusOK {
			m.emitFIN(x.Link, x.peer, 0, ev.Status) // the owner does not see the failure
			m.failTransfer(x, ev.Status)
			return true
		}
		m.finishRecv(x)
	case ev.Kind == EvDone && x.stage == stageRTS:
		m.endPush(x)
		if ev.Status != rdma.StatusOK {
			m.failTransfer(x, ev.Status)
			return true
		}
		m.complete(x)
	case ev.Kind == EvFIN && x.stage == stageRTS && (ev.Status != rdma.StatusOK || x.total == 0):
		m.endPush(x)
		if ev.Status != rdma.StatusOK {
			m.failTransfer(x, ev.Status)
			return true
		}
		m.complete(x)
	default:
		return false
	}
	return true
}

// endPush releases the resources of a send. Ending the registration also ends a pending
// OpPush, without help of the peer.
func (m *Machine) endPush(x *Xfer) {
	m.release(x)
	if x.pushed {
		x.pushed = false
		x.Link.device.pushes--
	}
}

func (rndvCoop) Abort(m *Machine, x *Xfer) { m.endPush(x) }
