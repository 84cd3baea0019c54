package p2p

// Rendezvous by RDMA Read: the sender announces where the data is, the receiver reads it
// when a receive has matched, and confirms.
//
//	sender                receiver
//	register, RTS ───────▶ match
//	              ◀═══════ RDMA Read
//	              ◀─────── FIN

import "github.com/muster-mpi/muster/rdma"

type rndvGet struct{}

func (rndvGet) Probe(k Key, l *Link) []Range {
	if !l.Attr.Ops.Has(rdma.OpRead) {
		return nil
	}
	a := l.Attr
	cost := a.ReadCost.Plus(a.RegCost).Plus(rdma.Cost{Fixed: 2 * a.SendCost.Of(headRTS)}).Plus(k.timeSlices(2, l)) // for the Read and FIN
	return []Range{{1, MaxSize, cost}}
}

func (rndvGet) Begin(m *Machine, x *Xfer) {
	if len(x.Buf) > 0 && !m.expose(x, rdma.RemoteRead) {
		return
	}
	m.emitRTS(x, protoGet, x.mr.Base, x.mr.RKey)
}

func (rndvGet) Step(m *Machine, x *Xfer, ev Event) bool {
	switch {
	case ev.Kind == EvMatched:
		n := min(x.total, len(x.Buf))
		if n == 0 {
			m.emitFIN(x.Link, x.peer, 0, rdma.StatusOK)
			m.finishRecv(x)
			return true
		}
		if !x.Grants.start(x) || x.Link.Attr.LocalKeys && !m.register(x, x.Buf[:n], 0, true) {
			return true
		}
		x.stage = stageTransfer
		m.transfer(x, rdma.OpRead, x.Buf[:n], x.remote, x.rkey)
	case ev.Kind == EvDone && x.stage == stageTransfer:
		m.release(x)
		m.emitFIN(x.Link, x.peer, x.total, ev.Status)
		m.endGrant(x)
		if ev.Status != rdma.StatusOK {
			m.failTransfer(x, ev.Status)
			return true
		}
		m.finishRecv(x)
	case ev.Kind == EvFIN && x.stage == stageRTS:
		m.release(x)
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

func (rndvGet) Abort(m *Machine, x *Xfer) {
	m.release(x)
	m.endGrant(x)
}
