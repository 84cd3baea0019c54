package p2p

// One-sided transfers for windows (MPI-4.1 chapter 12): one RDMA Write or Read to or from
// memory whose address and key the peer has published. There is no packet and no
// matching, and the peer takes no part.
//
//	origin                target
//	Transfer ════════════▶ RDMA Write, or ◀══ RDMA Read
//	done: the bytes have arrived
//
// stage.go selects the local memory that the device accesses.

import "github.com/muster-mpi/muster/rdma"

type oneSided struct{}

// Probe returns nil: this protocol carries no messages.
func (oneSided) Probe(Key, *Link) []Range { return nil }

func (oneSided) Begin(*Machine, *Xfer) {}

// Transfer starts to write Buf to remote, or to read it from there. Buf and Link are set;
// op is OpWrite or OpRead.
func (m *Machine) Transfer(x *Xfer, op rdma.Op, remote, key uint64) {
	l := x.Link
	x.proto, x.total, x.Send = protoOneSided, len(x.Buf), op == rdma.OpWrite
	if l.Err != nil {
		m.fail(x, l.Err)
		return
	}
	body := m.transferBuffer(x)
	if body == nil {
		return
	}
	x.stage = stageTransfer
	l.Stats.ByProtocol[protoOneSided]++
	m.sizes.add(protoOneSided, len(x.Buf))
	m.transferWith(rdma.Synchronous, x, op, body, remote, key)
}

func (oneSided) Step(m *Machine, x *Xfer, ev Event) bool {
	if ev.Kind != EvDone || x.stage != stageTransfer {
		return false
	}
	if via := x.via; via != nil && !x.Send && ev.Status == rdma.StatusOK {
		copy(x.Buf, via.Mem)
	}
	m.releaseBuffer(x)
	if ev.Status != rdma.StatusOK {
		m.failTransfer(x, ev.Status)
		return true
	}
	x.Len = x.total
	m.complete(x)
	return true
}

func (oneSided) Abort(m *Machine, x *Xfer) {
	if x.via != nil {
		m.orphanStage(x)
	}
	m.release(x)
}
