package p2p

// Rendezvous by RDMA Write: the sender asks, the receiver answers where the data should
// go, the sender writes it there and confirms.
//
//	sender                receiver
//	RTS ─────────────────▶ match
//	    ◀───────────────── register, CTS
//	RDMA Write ══════════▶
//	FIN ─────────────────▶

import "github.com/muster-mpi/muster/rdma"

type rndvPut struct{}

func (rndvPut) Probe(k Key, l *Link) []Range {
	if !l.Attr.Ops.Has(rdma.OpWrite) {
		return nil
	}
	a := l.Attr
	cost := a.PutCost.Plus(a.RegCost).Plus(rdma.Cost{Fixed: 3 * a.SendCost.Of(headRTS)}).Plus(k.timeSlices(2, l)) // for CTS and FIN
	return []Range{{1, MaxSize, cost}}
}

func (rndvPut) Begin(m *Machine, x *Xfer) { m.emitRTS(x, protoPut, 0, 0) }

func (rndvPut) Step(m *Machine, x *Xfer, ev Event) bool {
	switch {
	case ev.Kind == EvMatched:
		n := min(x.total, len(x.Buf))
		if n > 0 && (!x.Grants.start(x) || !m.register(x, x.Buf[:n], rdma.RemoteWrite, true)) {
			return true
		}
		m.emitCTS(x, n)
		if n == 0 { // nothing will be written: no FIN follows
			m.finishRecv(x)
			return true
		}
		x.stage = stageCTS
	case ev.Kind == EvCTS && x.stage == stageRTS:
		if ev.Len > len(x.Buf) {
			return false
		}
		if ev.Len == 0 {
			m.complete(x)
			return true
		}
		x.peer = ev.Peer
		if x.Link.Attr.LocalKeys && !m.register(x, x.Buf[:ev.Len], 0, true) {
			return true
		}
		x.stage = stageTransfer
		m.transfer(x, rdma.OpWrite, x.Buf[:ev.Len], ev.Addr, ev.Key)
	case ev.Kind == EvDone && x.stage == stageTransfer:
		m.wrote(x, ev.Status)
	case ev.Kind == EvFIN && x.stage == stageCTS:
		m.finishFill(x, ev.Status)
	case ev.Kind == EvFIN && x.stage == stageRTS && ev.Status != rdma.StatusOK:
		m.failTransfer(x, ev.Status) // the receiver could not register its buffer
	default:
		return false
	}
	return true
}

// wrote ends a send whose Write has completed or failed, and notifies the receiver.
func (m *Machine) wrote(x *Xfer, status rdma.Status) {
	m.release(x)
	m.emitFIN(x.Link, x.peer, len(x.Buf), status)
	if status != rdma.StatusOK {
		m.failTransfer(x, status)
		return
	}
	m.complete(x)
}

// finishFill ends a receive when the sender's FIN has arrived.
func (m *Machine) finishFill(x *Xfer, status rdma.Status) {
	m.release(x)
	m.endGrant(x)
	if status != rdma.StatusOK {
		m.failTransfer(x, status)
		return
	}
	m.finishRecv(x)
}

func (rndvPut) Abort(m *Machine, x *Xfer) {
	m.release(x)
	m.endGrant(x)
}
