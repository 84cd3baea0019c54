package p2p

// Rendezvous by RDMA Write: the sender asks, the receiver says where the data
// should go, the sender puts it there and says so.
//
//	sender                receiver
//	RTS ─────────────────▶ match
//	    ◀───────────────── register, CTS
//	RDMA Write ══════════▶
//	FIN ─────────────────▶

import "github.com/muster-mpi/muster/rdma"

type rndvPut struct{}

func (rndvPut) Name() string { return "rndv_put" }

func (rndvPut) Probe(k Key, l *Link) []Range {
	if !l.Attr.Ops.Has(rdma.OpWrite) || (k.Rendezvous != "" && k.Rendezvous != "put") {
		return nil
	}
	a := l.Attr
	cost := a.PutCost.Plus(a.RegCost).Plus(rdma.Cost{Fixed: 3 * a.SendCost.Of(headRTS)})
	return []Range{{1, MaxSize, cost}}
}

func (rndvPut) Begin(m *Machine, x *Xfer) { m.emitRTS(x, protoPut) }

func (rndvPut) Step(m *Machine, x *Xfer, ev Event) {
	switch ev.Kind {
	case EvMatched:
		n := min(x.total, len(x.Buf))
		if n > 0 && !m.register(x, x.Link, x.Buf[:n], rdma.RemoteWrite) {
			return
		}
		m.emitCTS(x, n)
		if n == 0 { // nothing will be written, so nothing is to be waited for
			m.received(x)
			return
		}
		x.stage = stageCTS
	case EvCTS:
		x.peer = ev.Peer
		if ev.Len == 0 {
			m.complete(x)
			return
		}
		n := min(ev.Len, len(x.Buf))
		if x.Link.Attr.LocalKeys && !m.register(x, x.Link, x.Buf[:n], 0) {
			return
		}
		x.stage = stageMove
		m.move(x, rdma.OpWrite, x.Buf[:n], ev.Addr, ev.Key)
	case EvDone:
		m.release(x)
		m.emitFIN(x.Link, x.peer, len(x.Buf), ev.Status)
		if ev.Status != rdma.StatusOK {
			m.fail(x, transportError(x, ev.Status))
			return
		}
		m.complete(x)
	case EvFIN:
		m.release(x)
		if ev.Status != rdma.StatusOK {
			m.fail(x, transportError(x, ev.Status))
			return
		}
		if x.Send { // the receiver gave up before it had a place for the data
			m.complete(x)
			return
		}
		m.received(x)
	}
}

func (rndvPut) Abort(m *Machine, x *Xfer) { m.release(x) }
